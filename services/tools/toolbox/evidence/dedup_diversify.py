"""Leaves out passages that repeat others, and chooses those that say different things."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kit.ranking.diversity import most_diverse
from services.tools.context import ToolContext
from services.tools.errors import ToolError
from services.tools.models import Passage, Policy, ToolOutput
from services.tools.passages.given import CHUNK_IDS, PASSAGES, given
from services.tools.passages.rendering import (
    all_described,
    citable,
    counted,
    degradations,
    fitted,
    readable_text,
    sentences,
)
from services.tools.passages.retrieval import Degradation
from services.tools.passages.selection import without_duplicates, word_vectors
from services.tools.ports import Vector

SCHEMA = {
    "type": "function",
    "function": {
        "name": "dedup_diversify",
        "description": (
            "Leaves out passages that say the same as others, then chooses those that are relevant and differ from each other "
            "(maximal marginal relevance)."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "chunk_ids": CHUNK_IDS,
                "passages": PASSAGES,
                "query": {
                    "type": "string",
                    "description": "What they shall be relevant to. Default: the earlier in the list, the more relevant.",
                    "minLength": 1,
                    "maxLength": 2000,
                },
                "k": {
                    "type": "integer",
                    "description": "Most passages to return. Default: 8.",
                    "minimum": 1,
                    "maximum": 50,
                },
                "relevance_weight": {
                    "type": "number",
                    "description": "1 looks at relevance only, 0 at differences only. Default: 0.5.",
                    "minimum": 0,
                    "maximum": 1,
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
    called_for_by=(r"duplicat|dedup|redundan|duplikat|doublon|дубликат|重复|重複|중복",),
)


async def dedup_diversify(
    context: ToolContext,
    chunk_ids: Sequence[str] = (),
    passages: Sequence[Mapping[str, str]] = (),
    query: str = "",
    k: int = 8,
    relevance_weight: float = 0.5,
) -> ToolOutput:
    """`hits` in the order of choice; `removed` names those that repeat others. Without the model server, passages are compared by
    their words, and `degraded` says so."""
    candidates = await given(context, chunk_ids, passages)
    kept, removed = await asyncio.to_thread(without_duplicates, candidates.passages)
    vectors, asked, degraded = await _vectors(context, kept, query)
    ranked = _relevance(kept, vectors, asked)
    by_key = {str(index): vector for index, vector in enumerate(vectors)}
    chosen = most_diverse(ranked, by_key, k, 1.0 - relevance_weight)
    hits = fitted([replace(kept[int(key)], score=ranked[key]) for key in chosen], context.settings.tools_text_tokens)
    content: dict[str, Any] = {"hits": all_described(hits), **candidates.gaps, **degradations(degraded)}
    if removed:
        content["removed"] = [
            {"id": each.passage.chunk_id, "same_as": each.kept.chunk_id, "why": each.stage} for each in removed
        ]
    summary = f"{counted(hits)} chosen of {len(candidates.passages)}; {len(removed)} repeated others."
    return ToolOutput(content, sentences(summary, candidates.in_words, degraded=degraded), citable(hits))


async def _vectors(
    context: ToolContext, passages: Sequence[Passage], query: str
) -> tuple[Sequence[Vector], Vector | None, Sequence[Degradation]]:
    """Of the passages and of the query, if any."""
    texts = [readable_text(passage) for passage in passages]
    models = context.services.models
    try:
        if not query:
            return await models.embed_passages(texts), None, ()
        asked = await models.embed_query(query)
        return await models.embed_passages(texts, asked.model), asked.vector, ()
    except ToolError as error:
        *vectors, words = await asyncio.to_thread(word_vectors, [*texts, query])
        message = f"The passages are compared by their words alone, since {error}."
        return vectors, words if query else None, [Degradation("dense", error.reason, message)]


def _relevance(passages: Sequence[Passage], vectors: Sequence[Vector], asked: Vector | None) -> dict[str, float]:
    """By place in `passages`, best first: the cosine with what was asked, else the order that they came in."""
    if asked is None:
        return {str(index): 1.0 - index / len(passages) for index in range(len(passages))}
    scores = {str(index): float(vector @ asked) for index, vector in enumerate(vectors)}
    return dict(sorted(scores.items(), key=lambda item: -item[1]))
