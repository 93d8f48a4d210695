"""How rare terms are, and how long chunks, in the collections that are searched. The server weighs a term by how rare it is in the
whole shard, so that the same collection would rank in another way beside other ones; its weights are corrected by these."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from services.retriever.indexes.scoring import LENGTHS, idf

Json = dict[str, Any]
FieldTerm = tuple[str, str]
"""A field and a term of it."""
_TERMS = "terms"


class Weights(NamedTuple):
    """What words are worth, and what the server gives their terms by itself."""

    word: Callable[[str, Sequence[str]], float]
    """Of the terms of a word in a field; 0 where it does not occur."""
    by_server: Callable[[str, str], float]


SERVER_WEIGHTS = Weights(lambda *_: 1.0, lambda *_: 1.0)
"""The server's own, for a search whose hits are scored anew: a word is worth what its terms are."""


class CorpusStatistics:
    """Of the terms of some queries: in the collections, and in the shard that the server counts over."""

    def __init__(self, terms: Sequence[FieldTerm], corpus: Json, shard: Json | None = None) -> None:
        """`corpus` and `shard` are the server's answers to `counts`. `weights` needs `shard`."""
        self._chunks, self._frequencies = _counted(terms, corpus)
        self._all_chunks, self._all_frequencies = _counted(terms, shard or corpus)
        found = corpus["aggregations"]
        self.mean_lengths: Mapping[str, float] = {name: float(found[name]["value"] or 0.0) for name in LENGTHS}

    @property
    def weights(self) -> Weights:
        return Weights(self.weight, self._server_weight)

    def weight(self, field: str, terms: Sequence[str]) -> float:
        """What a word with these terms is worth there: it counts as rare as the commonest of them. 0 where it does not occur."""
        frequency = max(self._frequencies.get((field, term), 0) for term in terms)
        return idf(self._chunks, frequency) if frequency else 0.0

    def _server_weight(self, field: str, term: str) -> float:
        return idf(self._all_chunks, self._all_frequencies.get((field, term), 0))


def counts(terms: Iterable[FieldTerm], corpus: Json | None, timeout: str) -> Json:
    """Body of a search that counts the chunks with each term among those that `corpus` finds, and their mean lengths; among all
    of the shard without it."""
    filters = [{"term": {field: term}} for field, term in terms]
    aggregations: Json = {_TERMS: {"filters": {"filters": filters}}}
    if corpus:
        aggregations |= {name: {"avg": {"field": column}} for name, column in LENGTHS.items()}
    body: Json = {"size": 0, "track_total_hits": True, "timeout": timeout, "aggs": aggregations}
    return body | ({"query": corpus} if corpus else {})


def _counted(terms: Sequence[FieldTerm], answer: Json) -> tuple[int, dict[FieldTerm, int]]:
    buckets = answer["aggregations"][_TERMS]["buckets"]
    frequencies = {term: int(bucket["doc_count"]) for term, bucket in zip(terms, buckets, strict=True)}
    return int(answer["hits"]["total"]["value"]), frequencies
