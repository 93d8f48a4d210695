"""The fields of a JSON Schema: what is to be read out of documents."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kit.language.terms import tokens

MOST_FIELDS = 40
_TYPES = ("string", "number", "integer", "boolean")
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


def fields_of_schema(schema: Mapping[str, Any]) -> Sequence[Field]:
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
