"""The passages that a tool is given: ids of chunks that a search found, or texts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.tools.context import ToolContext
from services.tools.errors import InvalidArguments, ToolError
from services.tools.models import Passage
from services.tools.passages.scope import is_readable

PASSAGES_MAX = 50
TEXT_CHARACTERS_MAX = 8000
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_=-]{0,127}")

CHUNK_IDS: Mapping[str, Any] = {
    "type": "array",
    "description": "Ids of passages (chunk_id) that a search found, best first.",
    "items": {"type": "string", "minLength": 1, "maxLength": 128},
    "minItems": 1,
    "maxItems": PASSAGES_MAX,
}
PASSAGES: Mapping[str, Any] = {
    "type": "array",
    "description": "Instead of chunk_ids: texts that are no passages of documents, best first. They cannot be cited.",
    "items": {
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "Your name for it.", "minLength": 1, "maxLength": 128},
            "text": {"type": "string", "minLength": 1, "maxLength": TEXT_CHARACTERS_MAX},
        },
        "required": ["text"],
        "additionalProperties": False,
    },
    "minItems": 1,
    "maxItems": PASSAGES_MAX,
}


class PassagesNotFound(ToolError):
    """None of the ids is of a passage that the call may read."""

    reason = "PASSAGES_NOT_FOUND"


@dataclass(frozen=True)
class Given:
    """Passages in the order of the arguments, each once, and ids that name none."""

    passages: Sequence[Passage]
    not_found: Sequence[str] = ()

    @property
    def gaps(self) -> dict[str, Any]:
        """The part of a content that says what is missing; nothing where nothing is."""
        return {"not_found": list(self.not_found)} if self.not_found else {}

    @property
    def in_words(self) -> str:
        return f"{len(self.not_found)} of the ids are unknown or gone." if self.not_found else ""


async def given(
    context: ToolContext, chunk_ids: Sequence[str] = (), passages: Sequence[Mapping[str, str]] = ()
) -> Given:
    """Reads the chunks anew, so that what was deleted or must not be read does not come in. Raises PassagesNotFound when none is
    left, InvalidArguments unless exactly one of both is given."""
    if bool(chunk_ids) == bool(passages):
        raise InvalidArguments("give either chunk_ids or passages")
    if passages:
        return Given([_own(number, passage) for number, passage in enumerate(passages, start=1)])
    windows = await context.services.retriever.fetch(askable(chunk_ids)) if askable(chunk_ids) else ()
    found = {window.passage.chunk_id: window.passage for window in windows if is_readable(context, window.passage)}
    return Given(list(found.values()), missing(chunk_ids, found))


def askable(chunk_ids: Sequence[str]) -> list[str]:
    """Each id once, without those that cannot be ids: models make some up."""
    return [chunk_id for chunk_id in dict.fromkeys(chunk_ids) if _ID.fullmatch(chunk_id)]


def missing(chunk_ids: Sequence[str], found: Mapping[str, Passage]) -> list[str]:
    """The ids that name no passage. Raises PassagesNotFound when there is none at all."""
    if not found:
        raise PassagesNotFound(
            "none of these passages can be read: their documents were deleted or changed since, or the ids are not those of "
            "passages; search again"
        )
    return [chunk_id for chunk_id in dict.fromkeys(chunk_ids) if chunk_id not in found]


def _own(number: int, passage: Mapping[str, str]) -> Passage:
    return Passage(passage.get("id", f"text {number}"), "", "", "", passage["text"])
