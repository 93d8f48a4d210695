"""From a conversation in the shape of OpenAI's API to the run that answers it."""

from collections.abc import Sequence

from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from services.gateway.errors import ModelNotOffered, UnsupportedParameter
from services.gateway.openai.messages import ChatMessage, texts
from services.gateway.openai.requests import ChatCompletionRequest

MODEL = "groundwork"
RESEARCH = "research"
MOST_HISTORY, MOST_HISTORY_CHARACTERS = 100, 100_000
"""Messages before the last one that are read, the latest of them."""
_ROLES = ("user", "assistant", "tool")
_EFFORTS = ("low", "medium", "high")


def model_names(agents: Sequence[str]) -> list[str]:
    """The names that a request may ask for, of an installation with these agents."""
    return [MODEL, *(f"{MODEL}/{agent}" for agent in agents), f"{MODEL}/{RESEARCH}"]


def model_not_offered(name: str) -> ModelNotOffered:
    """The error for a name that is not among them."""
    return ModelNotOffered(f"there is no model {name[:80]!r}; the models are listed at GET /v1/models")


def asked_collections(request: ChatCompletionRequest) -> list[str]:
    """Where to look: as the request says, or behind the `@` of its model, or the caller's default."""
    _, _, behind = request.model.partition("@")
    return list(request.collection_ids or ([behind] if behind else ["default"]))


def run_request(
    request: ChatCompletionRequest,
    collection_ids: Sequence[str],
    idempotency_key: str,
    previous_run_id: str = "",
) -> pb.StartRunRequest:
    """The run that answers the last message. Raises UnsupportedParameter or ModelNotOffered."""
    request.check()
    name = request.model.partition("@")[0]
    family, _, agent = name.partition("/")
    if family != MODEL:
        raise model_not_offered(name)
    run = pb.StartRunRequest(
        mode=pb.RUN_MODE_GROUNDED,
        collection_ids=collection_ids,
        thread_id=request.thread_id or "",
        agent=agent,
        idempotency_key=idempotency_key,
        verify=request.verify or "",
        guard=request.guard or "",
        budgets=pb.Budgets(answer_tokens=request.answer_tokens) if request.answer_tokens else None,
        function_choice=request.function_choice,
        one_function_at_a_time=request.parallel_tool_calls is False,
        answer_schema=request.answer_schema,
        sampling=_sampling(request),
        previous_run_id=previous_run_id,
    )
    for definition in (each.definition() for each in request.tools or ()):
        run.functions.add(
            name=definition.name, description=definition.description or "", parameters=definition.schema_text
        )
    _fill_in_conversation(run, request.messages)
    if agent == RESEARCH:
        effort = request.reasoning_effort if request.reasoning_effort in _EFFORTS else "auto"
        run.mode, run.agent, run.instructions = pb.RUN_MODE_AGENT, "", ""
        run.research.CopyFrom(pb.ResearchOptions(effort=effort))
    return run


def _sampling(request: ChatCompletionRequest) -> pb.Sampling | None:
    given = pb.Sampling(
        temperature=request.temperature, top_p=request.top_p, seed=request.seed, stop=texts(request.stop)
    )
    return given if given.ByteSize() else None


def _fill_in_conversation(run: pb.StartRunRequest, messages: Sequence[ChatMessage]) -> None:
    """What was said before, the question, and what was called for it. Raises UnsupportedParameter where neither a question nor what
    a function returned stands last."""
    instructions = [each.words() for each in messages if each.role in ("system", "developer")]
    run.instructions = "\n\n".join(filter(str.strip, instructions))
    said = [_message(each) for each in messages if each.role in _ROLES]
    asked = max((place for place, each in enumerate(said) if each.role == "user"), default=-1)
    goes_on = bool(run.previous_run_id)
    if not said or said[-1].role == "assistant" or (asked < 0 and not goes_on):
        raise UnsupportedParameter(
            "the last message is not the user's, nor what a function returned; end `messages` with what is to be answered",
            field="messages",
        )
    if asked >= 0:
        run.question = said[asked].text
        if not run.question.strip():
            raise UnsupportedParameter("the last message of the user says nothing; ask something", field="messages")
    run.called.extend(said[asked + 1 :])
    before = said[: max(asked, 0)]
    if goes_on:  # what functions of the previous response returned
        while before and before[0].role == "tool":
            run.called.append(before.pop(0))
    if not run.thread_id:
        run.history.extend(latest_messages(before))


def _message(message: ChatMessage) -> pb.HistoryMessage:
    """Raises UnsupportedParameter."""
    said = pb.HistoryMessage(role=message.role, text=message.words(), call_id=message.tool_call_id or "")
    if message.role == "tool" and not said.call_id:
        raise UnsupportedParameter("a message of a tool names no call; give its `tool_call_id`", field="messages")
    for call in message.tool_calls or () if message.role == "assistant" else ():
        said.calls.add(call_id=call.id, name=call.function.name, arguments=call.function.arguments)
    return said


def latest_messages(said: Sequence[pb.HistoryMessage]) -> list[pb.HistoryMessage]:
    """The last messages that fit, oldest first. What a function returned is left out with its call."""
    latest: list[pb.HistoryMessage] = []
    characters = 0
    for message in reversed(said[-MOST_HISTORY:]):
        characters += len(message.text)
        if characters > MOST_HISTORY_CHARACTERS:
            break
        if message.text.strip() or message.calls or message.role == "tool":
            latest.append(message)
    while latest and latest[-1].role == "tool":
        latest.pop()
    return latest[::-1]
