"""Summarises a document whole, by the sentences that carry its sections (LexRank). No model."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from kit.llm import estimate_tokens
from kit.reading.carrying import Sentence, carrying_sentences
from services.tools.context import ToolContext
from services.tools.models import Passage, Policy, ToolOutput
from services.tools.passages.rendering import citable, described, excerpt
from services.tools.passages.whole import DOCUMENT_ID, whole_document

SENTENCES_MAX = 40
_PASSAGES_MAX = 2000
"""About 800 pages."""

SCHEMA = {
    "type": "function",
    "function": {
        "name": "run_summary",
        "description": (
            "Summarises a document whole: reads all of it and returns the sentences that carry its sections, in reading order, "
            "each with its page. Use it where the best passages of a search are not enough."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "document_id": DOCUMENT_ID | {"description": "The document; a search or rag_list shows ids."},
                "sentences": {
                    "type": "integer",
                    "description": "Most sentences. Default: 12.",
                    "minimum": 1,
                    "maximum": SENTENCES_MAX,
                },
                "focus": {"type": "string", "description": "What to look at above all.", "maxLength": 300},
            },
            "required": ["document_id"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=20.0,
    key_arguments=("document_id", "focus"),
    on_request=True,
    called_for_by=(
        r"\b(?:summari[sz]\w*|summary|overview|gist|key points|tl;?dr)\b",
        r"zusammenfass\w*|überblick|résum\w+|resum\w+|riassum\w+|samenvat\w*|podsumow\w*|резюм\w*|кратко|обзор|摘要|要約|요약|ملخص",
    ),
)


@dataclass(frozen=True)
class _Numbered:
    """A passage as the summary reads it."""

    number: int
    text: str


async def run_summary(context: ToolContext, document_id: str, sentences: int = 12, focus: str = "") -> ToolOutput:
    """`sentences` in reading order, within the tokens that one call may give, and how much of the document was read."""
    read = await whole_document(context, document_id, _PASSAGES_MAX)
    chosen = await asyncio.to_thread(_carrying, read.passages, sentences, focus)
    shown: list[Passage] = []
    room = context.settings.tools_text_tokens
    for passage in (
        _of_one(read.passages[number], list(said)) for number, said in groupby(chosen, lambda each: each.source)
    ):
        room -= estimate_tokens(passage.text)
        if shown and room < 0:
            break
        shown.append(passage)
    content: dict[str, Any] = {
        "sentences": [described(passage) for passage in shown],
        "passages_read": len(read.passages),
        "document_passages": read.document_chunk_count,
    }
    name = read.passages[0].document_name
    summary = (
        f"{len(read.passages)} of {read.document_chunk_count} passages of {name} read, {len(shown)} places chosen."
    )
    return ToolOutput(content, " ".join(summary.split()), citable(shown))


def _carrying(passages: Sequence[Passage], count: int, focus: str) -> Sequence[Sentence]:
    """The sentences that carry the sentences that carry each section, in reading order."""
    numbered = [_Numbered(number, passage.text) for number, passage in enumerate(passages)]
    sections = [list(each) for _, each in groupby(numbered, lambda each: passages[each.number].heading_path[:2])]
    parts = [part for section in sections for part in (section[at : at + 8] for at in range(0, len(section), 8))]
    each_count = max(1, -(-count // len(parts)))
    found = [sentence for part in parts for sentence in carrying_sentences(part, each_count, focus)]
    if len(found) <= count:
        return found
    again = [_Numbered(number, sentence.text) for number, sentence in enumerate(found)]
    return [found[each.source] for each in carrying_sentences(again, count, focus)]


def _of_one(passage: Passage, said: Sequence[Sentence]) -> Passage:
    """The passage from its first chosen sentence to its last."""
    text = passage.text[: max(each.end for each in said)]
    return excerpt(passage, min(each.start for each in said), len(re.sub(r"\s+$", "", text)))
