"""Makes a context of passages: within a budget of tokens, without repetitions, the best outside, each to be cited."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from kit.grounding import question_coverage
from kit.llm import estimate_tokens
from services.tools.context import ToolContext
from services.tools.models import Passage, Policy, ToolOutput
from services.tools.passages.given import CHUNK_IDS, PASSAGES, given
from services.tools.passages.rendering import all_described, citable, counted, cut, readable_text, sentences
from services.tools.passages.selection import best_outside, without_duplicates

LEAST_TOKENS = 48
"""A sentence and its source: with less there is nothing to answer from."""
SCHEMA = {
    "type": "function",
    "function": {
        "name": "compose_context",
        "description": (
            "Composes the sources for an answer from passages that come best first: within a budget of tokens, without "
            "repetitions, the best first and last, and says which words of the question they cover."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "chunk_ids": CHUNK_IDS,
                "passages": PASSAGES,
                "question": {
                    "type": "string",
                    "description": "The user's question: coverage tells how much of it the passages speak of.",
                    "minLength": 1,
                    "maxLength": 2000,
                },
                "max_tokens": {
                    "type": "integer",
                    "description": "Most tokens of text. Default: as many as a tool may return.",
                    "minimum": LEAST_TOKENS,
                    "maximum": 100_000,
                },
            },
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=5.0,
    requires_fresh_input=True,
    worth=-1,
    called_for_by=(r"\bcompose\b[\w\s]{0,20}\b(?:context|sources)\b",),
)


async def compose_context(
    context: ToolContext,
    chunk_ids: Sequence[str] = (),
    passages: Sequence[Mapping[str, str]] = (),
    question: str = "",
    max_tokens: int | None = None,
) -> ToolOutput:
    """`passages`, the best first and last; `coverage`, 0 to 1 of the question's words, and those that are `missing`."""
    candidates = await given(context, chunk_ids, passages)
    distinct, repeated = await asyncio.to_thread(without_duplicates, candidates.passages)
    most = context.settings.tools_text_tokens
    chosen, left_out = _within(distinct, min(max_tokens or most, most))
    placed = best_outside(chosen)
    content: dict[str, Any] = {
        "passages": all_described(placed),
        "tokens": sum(estimate_tokens(passage.text) for passage in placed),
        **candidates.gaps,
    }
    if left_out:
        content["left_out"] = [passage.chunk_id for passage in left_out]
    if repeated:
        content["repeated"] = [each.passage.chunk_id for each in repeated]
    covered = await _coverage(question, placed)
    summary = f"{counted(placed)} composed."
    if covered:
        content |= covered
        summary = f"{counted(placed)} composed, covering {covered['coverage']:.0%} of the question's words."
    return ToolOutput(content, sentences(summary, candidates.in_words), citable(placed))


def _within(passages: Sequence[Passage], budget_tokens: int) -> tuple[list[Passage], list[Passage]]:
    """The best that fit, the last of them cut if enough of it is left, and those that do not."""
    for index, passage in enumerate(passages):
        cost = estimate_tokens(passage.text)
        if cost <= budget_tokens:
            budget_tokens -= cost
        elif budget_tokens >= LEAST_TOKENS:
            return [*passages[:index], cut(passage, budget_tokens)], list(passages[index + 1 :])
        else:
            return list(passages[:index]), list(passages[index:])
    return list(passages), []


async def _coverage(question: str, passages: Sequence[Passage]) -> dict[str, Any]:
    if not question:
        return {}
    texts = [f"{passage.document_name}\n{readable_text(passage)}" for passage in passages]
    share, missing = await asyncio.to_thread(question_coverage, question, texts)
    return {"coverage": round(share, 3), "missing": list(missing)}
