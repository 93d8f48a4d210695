"""Says what differs between two documents, section by section, with the words of both sides."""

import asyncio
from collections.abc import Sequence
from typing import Any

from kit.llm import estimate_tokens
from services.tools.context import ToolContext
from services.tools.errors import InvalidArguments
from services.tools.models import Passage, Policy, ToolOutput
from services.tools.passages.comparing import Compared, Said, compare
from services.tools.passages.rendering import citable, excerpt
from services.tools.passages.whole import DOCUMENT_ID, whole_document

_PASSAGES_MAX = 400
SCHEMA = {
    "type": "function",
    "function": {
        "name": "document_compare",
        "description": (
            "Compares two documents, or two versions of one, section by section: which sentences were changed, and which only "
            "one of them has, with the words of both."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "first_id": DOCUMENT_ID | {"description": "A document; a search or rag_list shows ids."},
                "second_id": DOCUMENT_ID | {"description": "The other."},
            },
            "required": ["first_id", "second_id"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=20.0,
    on_request=True,
    called_for_by=(
        r"\bcompar\w*|\bdiff(?:er\w*)?\b|\bwhat (?:has |was )?changed\b|\bchanges between\b",
        r"vergleich\w*|unterschied\w*|geändert|différen\w*|diferenc\w*|confront\w*|verschil\w*|porówna\w*|сравн\w*|отлич\w*",
        r"比较|区别|違い|比較|비교|차이|مقارنة",
    ),
)


async def document_compare(context: ToolContext, first_id: str, second_id: str) -> ToolOutput:
    """`sections` that differ, in the order of the first document. What there was no room for is counted in `left_out`."""
    if first_id == second_id:
        raise InvalidArguments("first_id and second_id name the same document")
    first = await whole_document(context, first_id, _PASSAGES_MAX)
    second = await whole_document(context, second_id, _PASSAGES_MAX)
    found = await asyncio.to_thread(compare, first.passages, second.passages)
    room = _Room(context.settings.tools_text_tokens)
    names = first.passages[0].document_name, second.passages[0].document_name
    content: dict[str, Any] = {
        "first": {"document_id": first_id, "document": names[0], "passages": len(first.passages)},
        "second": {"document_id": second_id, "document": names[1], "passages": len(second.passages)},
        "sections": [shown for each in found if each.differs and (shown := _section(each, room))],
        "same_sentences": sum(each.same for each in found),
    }
    if room.left_out:
        content["left_out"] = room.left_out
    if not content["sections"]:
        content["note"] = "They say the same, sentence for sentence."
    changed = sum(len(each.changed) for each in found)
    one, other = sum(len(each.first_only) for each in found), sum(len(each.second_only) for each in found)
    summary = f"{changed} sentences were changed, {one} stand in {names[0]} alone, {other} in {names[1]} alone."
    return ToolOutput(content, " ".join(summary.split()), citable(room.passages))


class _Room:
    """Room for sentences, and the passages of those that had some."""

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self._spans: dict[str, tuple[Passage, int, int]] = {}
        self.left_out = 0

    def take(self, *said: Said) -> bool:
        """Whether the sentences fit; then their passages are shown."""
        cost = sum(estimate_tokens(each.text) for each in said)
        if cost > self._tokens:
            self.left_out += 1
            return False
        self._tokens -= cost
        for each in said:
            passage, start, end = self._spans.get(each.passage.chunk_id, (each.passage, each.start, each.end))
            self._spans[passage.chunk_id] = passage, min(start, each.start), max(end, each.end)
        return True

    @property
    def passages(self) -> Sequence[Passage]:
        """Each from the first of its sentences to the last."""
        return [excerpt(*span) for span in self._spans.values()]


def _section(compared: Compared, room: _Room) -> dict[str, Any]:
    """What differs in a section; nothing where none of it fits."""
    changed = [
        {"first": _said(one), "second": _said(other)} for one, other in compared.changed if room.take(one, other)
    ]
    first = [_said(each) for each in compared.first_only if room.take(each)]
    second = [_said(each) for each in compared.second_only if room.take(each)]
    parts = {"changed": changed, "first_only": first, "second_only": second}
    known = {name: part for name, part in parts.items() if part}
    headings = {"first": compared.headings[0] or None, "second": compared.headings[1] or None}
    return {"headings": headings, **known} if known else {}


def _said(said: Said) -> dict[str, Any]:
    page = {"page": said.passage.page} if said.passage.page else {}
    return {"chunk_id": said.passage.chunk_id, "text": said.text, **page}
