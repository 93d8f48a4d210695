"""The messages of a prompt: rules, the thread so far, numbered sources, the question."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from kit.llm import ChatMessage, LanguageModel, ToolCall, ToolSpec
from services.orchestrator.answering.citations import without_marks
from services.orchestrator.log.events import Evidence
from services.orchestrator.models import Turn
from services.orchestrator.prompts import rules
from services.orchestrator.prompts.fencing import fenced, gives_orders_line
from services.orchestrator.prompts.fitting import Fitted, fit
from services.orchestrator.prompts.passages import source_block


async def compose(
    question: str,
    history: Sequence[Turn],
    evidence: Sequence[Evidence],
    model: LanguageModel,
    *,
    answer_tokens: int,
    tools: Sequence[ToolSpec] = (),
    system: str = rules.ANSWER,
) -> Fitted:
    """The prompt of an answer from evidence for `model`, which is to be offered `tools` beside it. Raises QuestionTooLong."""
    return await fit(
        conversation(system, question, history),
        model,
        answer_tokens,
        tools=tools,
        sources=[source_block(source) for source in evidence],
        render=partial(_asked, question),
    )


def tool_messages(question: str, history: Sequence[Turn], prompt: str = "") -> list[ChatMessage]:
    """For a model that may call tools; `prompt` is what an agent tells it."""
    return conversation(rules.with_prompt(rules.WITH_TOOLS, prompt), question, history)


def talk_messages(question: str, history: Sequence[Turn], prompt: str = "") -> list[ChatMessage]:
    """For a model that only talks; `prompt` holds further instructions."""
    return conversation(rules.with_prompt(rules.WITHOUT_TOOLS, prompt), question, history)


def conversation(system: str, question: str, history: Sequence[Turn]) -> list[ChatMessage]:
    """The system prompt, the turns before the question, and the question."""
    turns = alternating(history)
    while turns and turns[0].role != "user":  # templates want a user's message first
        turns = turns[1:]
    return [ChatMessage("system", system), *messages_of(turns), ChatMessage("user", question)]


def messages_of(turns: Sequence[Turn]) -> list[ChatMessage]:
    """The turns as a model is shown them. What a function returned is fenced: it may hold orders of somebody else."""
    return [_message(turn) for turn in turns]


def _message(turn: Turn) -> ChatMessage:
    if turn.role == "tool":
        orders = gives_orders_line(turn.text)
        text = f"{orders.strip()}\n{fenced(turn.text)}" if orders else fenced(turn.text)
        return ChatMessage("tool", text, tool_call_id=turn.call_id)
    calls = [ToolCall(each.call_id, each.name, each.arguments) for each in turn.calls]
    return ChatMessage("user" if turn.role == "user" else "assistant", turn.text, calls)


def alternating(history: Sequence[Turn]) -> list[Turn]:
    """The turns without marks, which count other sources than today's. Two of one role in a row are one: templates want them to
    alternate, and forgotten answers leave gaps."""
    turns: list[Turn] = []
    for turn in history:
        ending = rules.UNFINISHED.get(turn.run_status, "") if turn.run_status else ""
        text = f"{without_marks(turn.text).strip()} {ending}".strip()
        if turn.role == "tool" or turn.calls:
            turns.append(turn)
        elif turns and not turns[-1].calls and turns[-1].role == turn.role:
            turns[-1] = replace(turns[-1], text=f"{turns[-1].text}\n\n{text}")
        elif text:
            turns.append(replace(turn, text=text))
    while turns and (turns[-1].role != "assistant" or turns[-1].calls):
        turns.pop()  # a question that got no answer
    return turns


def _asked(question: str, blocks: Sequence[str]) -> str:
    sources = "\n\n".join(blocks)
    return f"Sources:\n\n{sources}\n\nQuestion: {question}"
