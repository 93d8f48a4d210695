"""Orders passages by how well they answer a query, as the model server scores them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

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
    quoted,
    readable_text,
    sentences,
)
from services.tools.passages.retrieval import Degradation

SCHEMA = {
    "type": "function",
    "function": {
        "name": "rerank",
        "description": "Orders passages by how well they answer a query, and returns the best of them with scores.",
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "The question.", "minLength": 1, "maxLength": 2000},
                "chunk_ids": CHUNK_IDS,
                "passages": PASSAGES,
                "top_n": {
                    "type": "integer",
                    "description": "Most passages to return. Default: 10.",
                    "minimum": 1,
                    "maximum": 50,
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=5.0,
    requires_fresh_input=True,
    worth=-1,
    called_for_by=(r"re-?rank|\border\b[\w\s]{0,20}\bpassages\b|(?:sort|ordne)\w*[\w\s]{0,20}passagen",),
)


async def rerank(
    context: ToolContext,
    query: str,
    chunk_ids: Sequence[str] = (),
    passages: Sequence[Mapping[str, str]] = (),
    top_n: int = 10,
) -> ToolOutput:
    """`hits`, best first. Without the model server: in the order given, without scores, and `degraded` says so."""
    candidates = await given(context, chunk_ids, passages)
    ordered, degraded = await _ordered(context, query, candidates.passages)
    hits = fitted(ordered[:top_n], context.settings.tools_text_tokens)
    content: dict[str, Any] = {"hits": all_described(hits), **candidates.gaps, **degradations(degraded)}
    done = f"{counted(hits)} in the order given" if degraded else f"{counted(hits)} reordered"
    return ToolOutput(
        content, sentences(f"{done} for {quoted(query)}.", candidates.in_words, degraded=degraded), citable(hits)
    )


async def _ordered(
    context: ToolContext, query: str, passages: Sequence[Passage]
) -> tuple[Sequence[Passage], Sequence[Degradation]]:
    texts = [readable_text(passage) for passage in passages]
    hashes = [passage.content_hash for passage in passages]
    try:
        scores = await context.services.models.rerank(query, texts, hashes if any(hashes) else ())
    except ToolError as error:
        message = f"The passages stand in the order given, since {error}."
        return passages, [Degradation("rerank", error.reason, message)]
    scored = [replace(passage, score=score) for passage, score in zip(passages, scores, strict=True)]
    return sorted(scored, key=lambda passage: -passage.score), ()
