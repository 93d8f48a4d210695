"""The fields that a message asks for: the properties of a JSON Schema in it, or names that it lists."""

import re
from collections.abc import Sequence

from kit.reading.fields import MOST_FIELDS, Field, fields_of_schema
from services.orchestrator.answering.blocks import read_object

_LISTED = re.compile(
    r"\b(?:extract|pull out|read out|collect|get|list)\b\s+(?P<names>.+?)"
    r"(?:\s+(?:from|of|in|out of|for)\s+(?:the|all|each|every|this|these|my|our)\b.*)?[.?!]?\s*$",
    re.IGNORECASE | re.DOTALL,
)
_BETWEEN = re.compile(r"\s*(?:,|;|\n|\band\b|&)\s*")
_ARTICLE = re.compile(r"^(?:the|its|their|a|an|each|every|all)\s+", re.IGNORECASE)


def read_fields(message: str) -> Sequence[Field]:
    """The fields in the order of the message; none where it asks for none."""
    schema = read_object(message)
    if schema is not None:
        return fields_of_schema(schema)
    found = _LISTED.search(message)
    names = _BETWEEN.split(found["names"]) if found else []
    named = dict.fromkeys(_ARTICLE.sub("", name).strip(" \"'`“”") for name in names)
    return [Field(name) for name in named if name and len(name.split()) <= 5][:MOST_FIELDS]
