"""How rare terms are in the collections that are searched. tantivy weighs a term by how rare it is in the whole index, so that the
same collection would rank in another way beside other ones; its weights are corrected by these."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import tantivy

from services.retriever.indexes.scoring import idf


class TermStatistics:
    """Of the chunks that a query finds, as one searcher sees them."""

    def __init__(self, searcher: Any, schema: Any, corpus: Any) -> None:
        self._searcher = searcher
        self._schema = schema
        self._corpus = corpus

    def weight(self, field: str, terms: Sequence[str]) -> float:
        """What a word with these terms is worth there: it counts as rare as the commonest of them. 0 where it does not occur."""
        frequency = max(self._frequency(field, term) for term in terms)
        return idf(self._chunks, frequency) if frequency else 0.0

    def engine_weight(self, field: str, term: str) -> float:
        """What the engine gives the term by itself."""
        return idf(self._searcher.num_docs, self._searcher.doc_freq(field, term))

    @cached_property
    def _chunks(self) -> int:
        return self._count(self._corpus)

    def mean_lengths(self, lengths: Mapping[str, str]) -> dict[str, float]:
        """Of each field, whose lengths lie in a column, in terms."""
        wanted = {field: {"avg": {"field": column}} for field, column in lengths.items()}
        found = self._searcher.aggregate(self._corpus, wanted)
        return {field: float(found[field]["value"] or 0.0) for field in lengths}

    def _frequency(self, field: str, term: str) -> int:
        frequency = int(self._searcher.doc_freq(field, term))
        if not frequency or self._chunks == self._searcher.num_docs:
            return frequency
        found = tantivy.Query.term_query(self._schema, field, term, index_option="basic")
        both = tantivy.Query.boolean_query([(tantivy.Occur.Must, found), (tantivy.Occur.Must, self._corpus)])
        return self._count(both)

    def _count(self, query: Any) -> int:
        return int(self._searcher.search(query, 1, count=True).count)
