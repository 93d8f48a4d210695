"""From a user's words to a tantivy query. The query parser is not used: any text a person types is a valid query here.

The query is an OR of the terms that the words have in the languages of what is searched. A term counts most in the text and a
little more when a title or heading has it. Quoted phrases count extra. Words that carry no meaning are left out unless nothing
else is there.

A term counts as rare as it is in the collections that are searched, whatever else the index holds. The terms of one word count as
rare as the commonest of them, like synonyms in Lucene: else the one chunk of another language, or one that was taken for it, would
have the rarest term of all and come first.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tantivy

from kit.language.phrases import phrase_tokens
from services.retriever.adapters.tantivy.statistics import TermStatistics
from services.retriever.analysis.analyser import Analysis
from services.retriever.indexes.filters import AnyOf, Clause, NoneOf
from services.retriever.indexes.scoring import LENGTHS, Sought, corpus_clauses, sought_in
from services.retriever.models import LexicalQuery

KEY = "key"
"""All exact-match fields; a term starts with the name of its field."""
EXACT = "exact"
"""What is cited, folded but not stemmed: where phrases that must be there are looked for."""
_SEPARATOR = "\x1e"
_MAX_TERMS_JOINED = 32
"""Values of a clause that are looked up one by one, which visits only what the rest of the query finds. A set of terms makes a
bitmap of all that has one of them first: two clauses that 10 000 chunks meet take 1.1 ms then, not 0.1; with some 100 values
it is as fast."""


def key_term(field: str, value: str) -> str:
    """The term of KEY that says that `field` has `value`."""
    return f"{field}{_SEPARATOR}{value}"


class Compiled(NamedTuple):
    """A query, what the score of what it finds is made of, and the mean length of each field; without `sought` the score is the
    engine's."""

    query: Any
    sought: Sequence[Sought]
    mean_lengths: Mapping[str, float]


class QueryBuilder:
    """Builds queries against one schema."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._analysis = Analysis()

    def matching(self, clauses: Sequence[Clause]) -> Any:
        """Documents for which all clauses hold, all with score 0."""
        return tantivy.Query.boolean_query([self._required(clause) for clause in clauses])

    def search(self, searcher: Any, clauses: Sequence[Clause], query: LexicalQuery) -> "Compiled | None":
        """Documents in scope that have all phrases and share a term with the text, scored by BM25: a term counts by how rare
        it is. Without a text those that have the phrases; None when there is neither a term nor a phrase."""
        phrases = [self._exact(words) for phrase in query.must_phrases if (words := phrase_tokens(phrase))]
        statistics = TermStatistics(searcher, self._schema, self.matching(corpus_clauses(clauses)))
        sought = list(sought_in(self._analysis, query, statistics.weight))
        if not sought and not phrases:
            return None
        parts = [*(self._required(clause) for clause in clauses), *((tantivy.Occur.Must, phrase) for phrase in phrases)]
        if sought:
            terms = [(tantivy.Occur.Should, self._by_engine(statistics, each)) for each in sought]
            parts.append((tantivy.Occur.Should if phrases else tantivy.Occur.Must, tantivy.Query.boolean_query(terms)))
        return Compiled(tantivy.Query.boolean_query(parts), [] if phrases else sought, statistics.mean_lengths(LENGTHS))

    def _required(self, clause: Clause) -> tuple[Any, Any]:
        if isinstance(clause, NoneOf):
            return (tantivy.Occur.MustNot, self._any_of([key_term(clause.field, value) for value in clause.values]))
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

    def _by_engine(self, statistics: TermStatistics, sought: Sought) -> Any:
        """A query that the engine gives this weight."""
        field, terms, weight = sought
        by_itself = sum(statistics.engine_weight(field, term) for term in terms)
        if len(terms) == 1:
            found = tantivy.Query.term_query(self._schema, field, terms[0])
        else:
            found = tantivy.Query.phrase_query(self._schema, field, list(terms))
        return tantivy.Query.boost_query(found, weight / by_itself)
