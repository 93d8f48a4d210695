"""From a conversation in the shape of OpenAI's API to the run that answers it."""

from collections.abc import Sequence

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from services.gateway.errors import ModelNotOffered, UnsupportedParameter
from services.gateway.openai.requests import MOST_HISTORY, MOST_HISTORY_CHARACTERS, ChatCompletionRequest, ChatMessage

MODEL = "groundwork"
RESEARCH = "research"
_ROLES = ("user", "assistant")
_EFFORTS = ("low", "medium", "high")


def model_names(agents: Sequence[str]) -> list[str]:
    """The names that a request may ask for, of an installation with these agents."""
    return [MODEL, *(f"{MODEL}/{agent}" for agent in agents), f"{MODEL}/{RESEARCH}"]


def asked_collections(request: ChatCompletionRequest) -> list[str]:
    """Where to look: as the request says, or behind the `@` of its model, or the caller's default."""
    _, _, behind = request.model.partition("@")
    return list(request.collection_ids or ([behind] if behind else ["default"]))


def run_request(
    request: ChatCompletionRequest, collection_ids: Sequence[str], idempotency_key: str
) -> pb.StartRunRequest:
    """The run that answers the last message. Raises UnsupportedParameter or ModelNotOffered."""
    request.check()
    before, question = _conversation(request.messages)
    name = request.model.partition("@")[0]
    family, _, agent = name.partition("/")
    if family != MODEL:
        raise ModelNotOffered(f"there is no model {name[:80]!r}; the models are listed at GET /v1/models")
    run = pb.StartRunRequest(
        mode=pb.RUN_MODE_GROUNDED,
        question=question,
        collection_ids=collection_ids,
        thread_id=request.thread_id or "",
        history=[] if request.thread_id else before,
        agent=agent,
        idempotency_key=idempotency_key,
        verify=request.verify or "",
        guard=request.guard or "",
        budgets=pb.Budgets(answer_tokens=request.answer_tokens) if request.answer_tokens else None,
    )
    if agent == RESEARCH:
        effort = request.reasoning_effort if request.reasoning_effort in _EFFORTS else "auto"
        run.mode, run.agent = pb.RUN_MODE_AGENT, ""
        run.research.CopyFrom(pb.ResearchOptions(effort=effort))
    return run


def _conversation(messages: Sequence[ChatMessage]) -> tuple[list[pb.HistoryMessage], str]:
    """What was said before, and the question. Raises UnsupportedParameter where the last message is not the user's."""
    spoken = [(each.role, each.words()) for each in messages if each.role in _ROLES]
    if not spoken or spoken[-1][0] != "user" or not spoken[-1][1].strip():
        raise UnsupportedParameter(
            "the last message is not the user's, or says nothing; end `messages` with what is to be answered",
            field="messages",
        )
    return _latest(spoken[:-1]), spoken[-1][1]


def _latest(spoken: Sequence[tuple[str, str]]) -> list[pb.HistoryMessage]:
    """The last messages that fit, oldest first."""
    latest: list[pb.HistoryMessage] = []
    characters = 0
    for role, text in reversed(spoken[-MOST_HISTORY:]):
        characters += len(text)
        if characters > MOST_HISTORY_CHARACTERS:
            break
        if text.strip():
            latest.append(pb.HistoryMessage(role=role, text=text))
    return latest[::-1]
