"""The body of a search from the options of the command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from cli.errors import UsageError

SearchStrategy: TypeAlias = Literal["dense", "lexical", "hybrid"]
SearchRerank: TypeAlias = Literal["on", "off", "auto"]
SearchFusion: TypeAlias = Literal["rrf", "convex"]


def metadata_of(conditions: Sequence[str]) -> dict[str, list[str]]:
    """`KEY=VALUE` words by key; the values of one key are alternatives."""
    metadata: dict[str, list[str]] = {}
    for condition in conditions:
        key, equals, value = condition.partition("=")
        if not key or not equals:
            raise UsageError(f"--where {condition!r} is not KEY=VALUE, as in --where author=Ann.")
        metadata.setdefault(key, []).append(value)
    return metadata
