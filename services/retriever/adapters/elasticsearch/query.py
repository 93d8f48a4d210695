"""From a scope and a user's words to Elasticsearch's query language: the same meaning as `tantivy_query`.

The query parser of `query_string` is not used: any text a person types is a valid query here.
"""

from collections.abc import Sequence
from typing import Any

from kit.language.phrases import phrase_tokens
from services.retriever.adapters.elasticsearch.mapping import EXACT, ORDINAL
from services.retriever.adapters.elasticsearch.statistics import FieldTerm, Weights, counts
from services.retriever.analysis.analyser import Analysis
from services.retriever.indexes import filters
from services.retriever.indexes.filters import AnyOf, Clause, NoneOf
from services.retriever.indexes.scoring import TEXT, TITLE, Sought, corpus_clauses
from services.retriever.models import LexicalQuery, RevisionKey, WriteKey

Json = dict[str, Any]
_TERMS_MAX = 65_536
"""Values that the server takes in one condition (`index.max_terms_count`)."""
_SEARCH_TIMEOUT = "5s"
"""For the server to give a search up: nobody waits for it longer."""


def field_terms(analysis: Analysis, queries: Sequence[LexicalQuery]) -> list[FieldTerm]:
    """All that the queries look for, each once."""
    found: dict[FieldTerm, None] = {}
    for query in queries:
        words = analysis.query_terms(query.text, query.languages)
        found |= dict.fromkeys((field, term) for terms in words for term in terms for field in (TEXT, TITLE))
        quoted = analysis.quoted_terms(query.text, query.languages)
        found |= dict.fromkeys((TEXT, term) for terms in quoted for term in terms)
    return list(found)


def count_bodies(clauses: Sequence[Clause], terms: Sequence[FieldTerm]) -> list[Json]:
    """What `CorpusStatistics` needs: counts in the collections, and in the shard."""
    corpus = matching(corpus_clauses(clauses))
    return [counts(terms, corpus, _SEARCH_TIMEOUT), counts(terms, None, _SEARCH_TIMEOUT)]


def search_body(
    clauses: Sequence[Clause],
    query: LexicalQuery,
    sought: Sequence[Sought],
    weights: Weights,
    limit: int,
) -> Json | None:
    """Chunks in scope that have all phrases and share a word with the text, scored by BM25. Without a text those that have
    the phrases; None when there is neither a word nor a phrase. `sought` has the weights of `weights`."""
    phrases = must_phrases(query)
    if not sought and not phrases:
        return None
    scored: Json = {"must": phrases} if phrases else {"minimum_should_match": 1}
    if sought:
        scored["should"] = [_wanted(each, weights) for each in sought]
    return _found({**scored, "filter": _filters(clauses)}, limit) | {"timeout": _SEARCH_TIMEOUT}


def must_phrases(query: LexicalQuery) -> list[Json]:
    """Conditions for what has to stand there word for word."""
    return [
        {"match_phrase": {EXACT: " ".join(words)}} for phrase in query.must_phrases if (words := phrase_tokens(phrase))
    ]


def matching(clauses: Sequence[Clause]) -> Json:
    """Chunks for which every clause holds."""
    return {"bool": {"filter": _filters(clauses)}}


def of_revision(key: RevisionKey) -> Json:
    return matching([_revision(key)])


def of_attempt(key: WriteKey) -> Json:
    return matching([_revision(key.revision), _attempt(key)])


def of_other_attempts(key: WriteKey) -> Json:
    """What other attempts left of the revision."""
    return {"bool": {"filter": _filters([_revision(key.revision)]), "must_not": _filters([_attempt(key)])}}


def at_positions(key: RevisionKey, ordinals: Sequence[int]) -> Json:
    """Body of a search for the revision's chunks at these positions."""
    conditions = [*_filters([_revision(key)]), {"terms": {ORDINAL: list(ordinals)}}]
    return _found({"filter": conditions}, len(ordinals)) | {"sort": ["_doc"]}


def writes_page(size: int, after: Json | None, query: Json | None = None) -> Json:
    """Body of a search for one page of the attempts whose chunks match, or of all: a composite aggregation, as it reads on where
    the last page ended."""
    composite: Json = {"size": size, "sources": [{filters.WRITE: {"terms": {"field": filters.WRITE}}}]}
    if after:
        composite["after"] = after
    body: Json = {"size": 0, "track_total_hits": False, "aggs": {"writes": {"composite": composite}}}
    return body | ({"query": query} if query else {})


def _found(condition: Json, limit: int) -> Json:
    return {"query": {"bool": condition}, "size": limit, "track_total_hits": False}


def _wanted(sought: Sought, weights: Weights) -> Json:
    """A condition that the server gives this weight."""
    field, terms, weight = sought
    boost = weight / sum(weights.by_server(field, term) for term in terms)
    if len(terms) == 1:
        return {"term": {field: {"value": terms[0], "boost": boost}}}
    return {"match_phrase": {field: {"query": " ".join(terms), "boost": boost}}}


def _filters(clauses: Sequence[Clause]) -> list[Json]:
    return [_filter(clause) for clause in clauses]


def _filter(clause: Clause) -> Json:
    if isinstance(clause, AnyOf):
        return {"terms": {clause.field: list(clause.values)}}
    if isinstance(clause, NoneOf):
        starts = range(0, len(clause.values), _TERMS_MAX)
        parts = [list(clause.values[start : start + _TERMS_MAX]) for start in starts]
        return {"bool": {"must_not": [{"terms": {clause.field: part}} for part in parts]}}
    bounds = {"gte": clause.gte, "lt": clause.lt}
    return {"range": {clause.field: {name: value for name, value in bounds.items() if value is not None}}}


def _revision(key: RevisionKey) -> AnyOf:
    return AnyOf(filters.REVISION, (filters.revision_term(key),))


def _attempt(key: WriteKey) -> AnyOf:
    return AnyOf(filters.WRITE, (filters.write_term(key),))
