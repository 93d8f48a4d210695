"""The fields that a message asks for: the properties of a JSON Schema in it, or names that it lists."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kit.language.terms import tokens
from services.orchestrator.answering.blocks import read_object

MOST_FIELDS = 40
_TYPES = ("string", "number", "integer", "boolean")
_LISTED = re.compile(
    r"\b(?:extract|pull out|read out|collect|get|list)\b\s+(?P<names>.+?)"
    r"(?:\s+(?:from|of|in|out of|for)\s+(?:the|all|each|every|this|these|my|our)\b.*)?[.?!]?\s*$",
    re.IGNORECASE | re.DOTALL,
)
_BETWEEN = re.compile(r"\s*(?:,|;|\n|\band\b|&)\s*")
_ARTICLE = re.compile(r"^(?:the|its|their|a|an|each|every|all)\s+", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True)
class Field:
    """One column."""

    name: str
    type: str = "string"
    description: str = ""

    @property
    def words(self) -> frozenset[str]:
        """Stems of its name."""
        spoken = _CAMEL.sub(" ", self.name).replace("_", " ").replace("-", " ")
        return frozenset(token.stem for token in tokens(spoken) if not token.is_stopword)


def read_fields(message: str) -> Sequence[Field]:
    """The fields in the order of the message; none where it asks for none."""
    schema = read_object(message)
    if schema is not None:
        return _of_schema(schema)
    found = _LISTED.search(message)
    names = _BETWEEN.split(found["names"]) if found else []
    named = dict.fromkeys(_ARTICLE.sub("", name).strip(" \"'`“”") for name in names)
    return [Field(name) for name in named if name and len(name.split()) <= 5][:MOST_FIELDS]


def _of_schema(schema: Mapping[str, Any]) -> Sequence[Field]:
    """Simple properties of an object, or of the objects of a list."""
    items = schema.get("items")
    properties = (items if isinstance(items, Mapping) else schema).get("properties")
    if not isinstance(properties, Mapping):
        return []
    fields = [
        Field(str(name), _type(each), str(each.get("description") or ""))
        for name, each in properties.items()
        if isinstance(each, Mapping)
    ]
    return fields[:MOST_FIELDS]


def _type(schema: Mapping[str, Any]) -> str:
    said = schema.get("type", "string")
    named = said if isinstance(said, list) else [said]
    return next((each for each in named if each in _TYPES), "string")
