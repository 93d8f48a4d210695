"""What Elastic says a mapping and a query may have: the types that it generates from its specification of the API."""

from __future__ import annotations

import inspect
from typing import Any

from elasticsearch import dsl
from elasticsearch.dsl import types

_FIELD_TYPES: dict[str, type] = {
    "keyword": dsl.Keyword,
    "text": dsl.Text,
    "long": dsl.Long,
    "integer": dsl.Integer,
    "object": dsl.Object,
}
_QUERY_TYPES: dict[str, type] = {
    "bool": dsl.query.Bool,
    "match_phrase": types.MatchPhraseQuery,
    "term": types.TermQuery,
}


def check_mapping(properties: dict[str, Any]) -> None:
    for mapped in properties.values():
        known = _parameters(_FIELD_TYPES[mapped.get("type", "object")])
        assert set(mapped) - {"type"} <= known
        check_mapping(mapped.get("properties", {}))


def check_query(query: dict[str, Any]) -> int:
    """The number of conditions in it, each of which has been compared with the types that Elastic generates from its
    specification of the API."""
    ((kind, condition),) = query.items()
    if kind == "bool":
        assert set(condition) <= _parameters(_QUERY_TYPES[kind])
        parts = [part for name in ("must", "filter", "should", "must_not") for part in condition.get(name, ())]
        return sum(map(check_query, parts))
    ((_, asked),) = condition.items()
    if kind == "terms":
        assert isinstance(asked, list)
    elif kind == "range":
        assert set(asked) <= {"gt", "gte", "lt", "lte"}
    elif isinstance(asked, dict):
        assert set(asked) <= _parameters(_QUERY_TYPES[kind])
    return 1


def _parameters(known: type) -> set[str]:
    return set(inspect.signature(known).parameters) - {"args", "kwargs"}
