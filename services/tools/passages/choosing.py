"""Choosing among the passages of web pages: those that fit what is looked for, and what a model reads of one result."""

from collections.abc import Sequence

from kit.llm import estimate_tokens
from services.tools.context import ToolContext
from services.tools.errors import ToolError
from services.tools.models import Passage
from services.tools.passages.rendering import readable_text

_RANKED_MAX = 100
"""Passages that the reranker reads: a person waits."""


def within(passages: Sequence[Passage], budget_tokens: int) -> list[Passage]:
    """The first passages within the budget, at least one."""
    shown: list[Passage] = []
    for passage in passages:
        budget_tokens -= estimate_tokens(passage.text)
        if shown and budget_tokens < 0:
            break
        shown.append(passage)
    return shown


async def ranked(passages: Sequence[Passage], look_for: str, context: ToolContext) -> Sequence[Passage]:
    """Best first by the reranker; in their order where nothing is looked for or the reranker does not answer."""
    if not look_for.strip() or len(passages) < 2:
        return passages
    candidates = passages[:_RANKED_MAX]
    try:
        scores = await context.services.models.rerank(look_for, [readable_text(each) for each in candidates])
    except ToolError:
        return passages
    order = sorted(range(len(candidates)), key=lambda place: -scores[place])
    return [candidates[place] for place in order]
