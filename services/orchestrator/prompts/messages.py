"""The messages of a prompt: rules, the thread so far, numbered sources, the question."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from kit.llm import ChatMessage, LanguageModel, ToolSpec
from services.orchestrator.answering.citations import without_marks
from services.orchestrator.log.events import Evidence
from services.orchestrator.models import Turn
from services.orchestrator.prompts import rules
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
    if turns and turns[0].role != "user":  # templates want a user's message first
        turns = turns[1:]
    said = [ChatMessage("user" if turn.role == "user" else "assistant", turn.text) for turn in turns]
    return [ChatMessage("system", system), *said, ChatMessage("user", question)]


def alternating(history: Sequence[Turn]) -> list[Turn]:
    """The turns without marks, which count other sources than today's. Two of one role in a row are one: templates want them to
    alternate, and forgotten answers leave gaps."""
    turns: list[Turn] = []
    for turn in history:
        ending = rules.UNFINISHED.get(turn.run_status, "") if turn.run_status else ""
        text = f"{without_marks(turn.text).strip()} {ending}".strip()
        if turns and turns[-1].role == turn.role:
            turns[-1] = replace(turns[-1], text=f"{turns[-1].text}\n\n{text}")
        elif text:
            turns.append(replace(turn, text=text))
    if turns and turns[-1].role == "user":
        turns.pop()  # a question that got no answer
    return turns


def _asked(question: str, blocks: Sequence[str]) -> str:
    sources = "\n\n".join(blocks)
    return f"Sources:\n\n{sources}\n\nQuestion: {question}"
