"""The part of Elasticsearch's query language that the double understands, evaluated over documents in memory. What it does not
know it refuses, as the server does."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


class RequestRefused(Exception):
    """Becomes an error body of the server."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.kind, self.reason = status, kind, reason

    @property
    def body(self) -> Json:
        cause = {"type": self.kind, "reason": self.reason}
        return {"error": {"root_cause": [cause], **cause}, "status": self.status}


@dataclass(frozen=True)
class Document:
    """A document as the index holds it."""

    identifier: str
    routing: str
    source: Json


class Evaluator:
    """Scores documents: None when one does not match."""

    def __init__(self, mappings: Json, documents: Sequence[Document]) -> None:
        self._mappings = mappings
        self._documents = documents
        self._kinds: dict[str, Callable[[Any, Document], float | None]] = {
            "bool": self._bool,
            "terms": self._terms,
            "range": self._range,
            "term": self._term,
            "match_phrase": self._match_phrase,
        }

    def found(self, query: Json) -> list[tuple[Document, float]]:
        """Best first."""
        scored = [(document, self.score(query, document)) for document in self._documents]
        return sorted(((d, s) for d, s in scored if s is not None), key=lambda pair: -pair[1])

    def score(self, query: Json, document: Document) -> float | None:
        ((kind, condition),) = query.items()
        if kind not in self._kinds:
            raise RequestRefused(400, "parsing_exception", f"unknown query [{kind}]")
        return self._kinds[kind](condition, document)

    def _bool(self, condition: Json, document: Document) -> float | None:
        _only(condition, "must", "filter", "must_not", "should", "minimum_should_match")
        required = [self.score(query, document) for query in (*condition.get("must", ()),)]
        filtered = [self.score(query, document) for query in condition.get("filter", ())]
        if None in required or None in filtered:
            return None
        if any(self.score(query, document) is not None for query in condition.get("must_not", ())):
            return None
        optional = [
            score for query in condition.get("should", ()) if (score := self.score(query, document)) is not None
        ]
        has_others = "must" in condition or "filter" in condition
        if len(optional) < condition.get("minimum_should_match", 0 if has_others or "should" not in condition else 1):
            return None
        return sum(optional) + sum(score for score in required if score is not None)

    def _terms(self, condition: Json, document: Document) -> float | None:
        ((field, values),) = condition.items()
        held = _values(document.source, field)
        self._must_be(field, "keyword", "integer", "long")
        return 1.0 if set(held) & set(values) else None

    def _range(self, condition: Json, document: Document) -> float | None:
        ((field, bounds),) = condition.items()
        self._must_be(field, "long", "integer")
        _only(bounds, "gte", "lt")
        held = _values(document.source, field)
        return 1.0 if any(bounds.get("gte", -math.inf) <= v < bounds.get("lt", math.inf) for v in held) else None

    def _term(self, condition: Json, document: Document) -> float | None:
        ((field, asked),) = condition.items()
        asked = {"value": asked} if isinstance(asked, str) else asked
        _only(asked, "value", "boost")
        return self._scored(field, [[asked["value"]]], document, asked)

    def _scored(self, field: str, words: list[list[str]], document: Document, asked: Json) -> float | None:
        held = self._analysed(field, document)
        scores = [
            self._weight(field, terms) * held.count(term) / (held.count(term) + 1.2)
            for terms in words
            for term in terms
            if term in held
        ]
        return float(asked.get("boost", 1.0)) * sum(scores) if scores else None

    def _match_phrase(self, condition: Json, document: Document) -> float | None:
        ((field, asked),) = condition.items()
        asked = {"query": asked} if isinstance(asked, str) else asked
        _only(asked, "query", "boost")
        wanted = asked["query"].split()
        held = self._analysed(field, document)
        spans = (held[start : start + len(wanted)] for start in range(len(held)))
        return float(asked.get("boost", 1.0)) * len(wanted) if wanted and any(s == wanted for s in spans) else None

    def _weight(self, field: str, terms: Sequence[str]) -> float:
        """Rare terms count more, as in BM25."""
        having = max(sum(term in self._analysed(field, document) for document in self._documents) for term in terms)
        return math.log(1 + (len(self._documents) - having + 0.5) / (having + 0.5))

    def _analysed(self, field: str, document: Document) -> list[str]:
        self._must_be(field, "text")
        analyser = self._field(field)["analyzer"]
        if analyser != "whitespace":
            raise RequestRefused(400, "query_shard_exception", f"the double does not know the analyzer [{analyser}]")
        return [term for value in _values(document.source, field) for term in value.split()]

    def _must_be(self, field: str, *types: str) -> None:
        found = self._field(field).get("type")
        if found not in types:
            raise RequestRefused(400, "query_shard_exception", f"field [{field}] is of type [{found}]")

    def _field(self, field: str) -> Json:
        properties: Any = self._mappings
        for part in field.split("."):
            properties = properties.get("properties", {}).get(part)
            if properties is None:  # the server answers that nothing matches; here that is a mistake
                raise RequestRefused(400, "query_shard_exception", f"no mapping found for [{field}]")
        return dict(properties)


def check_document(mappings: Json, source: Mapping[str, Any], path: str = "") -> None:
    """Refuses what is not mapped, as `dynamic: strict` does."""
    for name, value in source.items():
        mapped = mappings["properties"].get(name)
        if mapped is None:
            raise RequestRefused(
                400,
                "strict_dynamic_mapping_exception",
                f"mapping set to strict, dynamic introduction of [{name}] within [{path or '_doc'}] is not allowed",
            )
        if "properties" in mapped:
            check_document(mapped, value, f"{path}{name}.")


def _values(source: Json, field: str) -> list[Any]:
    value: Any = source
    for part in field.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, list) else [] if value is None else [value]


def _only(given: Json, *known: str) -> None:
    if unknown := set(given) - set(known):
        raise RequestRefused(400, "parsing_exception", f"unknown field {sorted(unknown)}")
