"""From a user's words to a tantivy query. The query parser is not used: any text a person types is a valid query here.

The query is an OR of the terms that the words have in the languages of what is searched. A term counts most in the text and a
little more when a title or heading has it. Quoted phrases count extra. Words that carry no meaning are left out unless nothing
else is there.

The terms of one word count as rare as all of them together, like synonyms in Lucene: else the one chunk of another language, or one
that was taken for it, would have the rarest term of all and come first.
"""

import math
import re
from collections.abc import Sequence
from typing import Any

import tantivy

from kit.language.phrases import phrase_tokens
from services.retriever.adapters.tantivy_analysis import Analysis
from services.retriever.filters import AnyOf, Clause
from services.retriever.models import LexicalQuery

KEY = "key"
"""All exact-match fields; a term starts with the name of its field."""
TEXT = "text"
TITLE = "title"
EXACT = "exact"
"""What is cited, folded but not stemmed: where phrases that must be there are looked for."""
TITLE_BOOST = 0.25
"""nDCG@10 on SciFact: 0.690 at 0, 0.699 at 0.25, 0.685 at 0.5, 0.662 at 1. A title is part of the searched text already."""
PHRASE_BOOST = 2.0
_SEPARATOR = "\x1e"
_MAX_TERMS = 128
_MAX_PHRASES = 4
_MAX_TERMS_JOINED = 32
"""Values of a clause that are looked up one by one, which visits only what the rest of the query finds. A set of terms makes a
bitmap of all that has one of them first: two clauses that 10 000 chunks meet take 1.1 ms then, not 0.1; with some 100 values
it is as fast."""
_QUOTED = re.compile(r"[\"“”„«]([^\"“”„«»]{3,200})[\"“”„»]")


def key_term(field: str, value: str) -> str:
    """The term of KEY that says that `field` has `value`."""
    return f"{field}{_SEPARATOR}{value}"


class QueryBuilder:
    """Builds queries against one schema."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._analysis = Analysis()

    def matching(self, clauses: Sequence[Clause]) -> Any:
        """Documents for which all clauses hold, all with score 0."""
        return tantivy.Query.boolean_query([self._must(clause) for clause in clauses])

    def search(self, searcher: Any, clauses: Sequence[Clause], query: LexicalQuery) -> Any | None:
        """Documents in scope that have all phrases and share a term with the text, scored by BM25: a term counts by how rare
        it is. Without a text those that have the phrases; None when there is neither a term nor a phrase."""
        phrases = [self._exact(words) for phrase in query.must_phrases if (words := phrase_tokens(phrase))]
        wanted = self._words(searcher, query)
        if not wanted and not phrases:
            return None
        parts = [*(self._must(clause) for clause in clauses), *((tantivy.Occur.Must, phrase) for phrase in phrases)]
        if wanted:
            should = tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in wanted])
            parts.append((tantivy.Occur.Should if phrases else tantivy.Occur.Must, should))
        return tantivy.Query.boolean_query(parts)

    def _must(self, clause: Clause) -> tuple[Any, Any]:
        if isinstance(clause, AnyOf):
            query = self._any_of([key_term(clause.field, value) for value in clause.values])
        else:
            query = tantivy.Query.range_query(
                self._schema,
                clause.field,
                tantivy.FieldType.Integer,
                clause.gte,
                clause.lt,
                include_upper=clause.lt is None,
            )
        return (tantivy.Occur.Must, tantivy.Query.const_score_query(query, 0.0))

    def _any_of(self, terms: Sequence[str]) -> Any:
        if len(terms) > _MAX_TERMS_JOINED:
            return tantivy.Query.term_set_query(self._schema, KEY, list(terms))
        queries = (tantivy.Query.term_query(self._schema, KEY, term, index_option="basic") for term in terms)
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])

    def _exact(self, words: Sequence[str]) -> Any:
        if len(words) == 1:
            return tantivy.Query.term_query(self._schema, EXACT, words[0])
        return tantivy.Query.phrase_query(self._schema, EXACT, list(words))

    def _words(self, searcher: Any, query: LexicalQuery) -> list[Any]:
        queries = []
        for variants in self._analysis.query_terms(query.text, query.languages)[:_MAX_TERMS]:
            for term, weight in _weighted(searcher, variants):
                in_text = tantivy.Query.term_query(self._schema, TEXT, term)
                in_title = tantivy.Query.term_query(self._schema, TITLE, term)
                queries.append(in_text if weight == 1 else tantivy.Query.boost_query(in_text, weight))
                queries.append(tantivy.Query.boost_query(in_title, weight * TITLE_BOOST))
        return queries + self._phrases(query)

    def _phrases(self, query: LexicalQuery) -> list[Any]:
        quoted = _QUOTED.findall(query.text)[:_MAX_PHRASES]
        phrases = (terms for phrase in quoted for terms in self._analysis.phrases(phrase, query.languages))
        return [
            tantivy.Query.boost_query(tantivy.Query.phrase_query(self._schema, TEXT, [*terms]), PHRASE_BOOST)
            for terms in phrases
            if len(terms) > 1
        ]


def _weighted(searcher: Any, variants: Sequence[str]) -> list[tuple[str, float]]:
    """The terms of one word, each with the weight that makes it count as rare as all of them together."""
    if len(variants) == 1:
        return [(variants[0], 1.0)]
    frequencies = [searcher.doc_freq(TEXT, term) for term in variants]
    together = _idf(searcher.num_docs, sum(frequencies))
    return [
        (
            term,
            together / _idf(searcher.num_docs, frequency) if frequency else 1.0,
        )  # a heading may have what no text has
        for term, frequency in zip(variants, frequencies, strict=True)
    ]


def _idf(chunks: int, frequency: int) -> float:
    """As BM25 in tantivy has it, Robertson and Zaragoza 2009."""
    return math.log(1 + (max(chunks - frequency, 0) + 0.5) / (frequency + 0.5))
