"""From a scope and a user's words to Elasticsearch's query language: the same meaning as `tantivy_query`.

The query parser of `query_string` is not used: any text a person types is a valid query here.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from kit.language.phrases import phrase_tokens
from services.retriever.adapters.elasticsearch.mapping import EXACT, ORDINAL, TEXT, TITLE
from services.retriever.analysis.analyser import Analysis
from services.retriever.analysis.bm25 import PHRASE_BOOST, TITLE_BOOST
from services.retriever.indexes import filters
from services.retriever.indexes.filters import AnyOf, Clause
from services.retriever.models import LexicalQuery, RevisionKey, WriteKey

Json = dict[str, Any]
_SIGN = re.compile(r"[^\w]")
_SEARCH_TIMEOUT = "5s"
"""For the server to give a search up: nobody waits for it longer."""


def search_body(clauses: Sequence[Clause], query: LexicalQuery, analysis: Analysis, limit: int) -> Json | None:
    """Chunks in scope that have all phrases and share a word with the text, scored by BM25. Without a text those that have
    the phrases; None when there is neither a word nor a phrase."""
    phrases = [
        {"match_phrase": {EXACT: " ".join(words)}} for phrase in query.must_phrases if (words := phrase_tokens(phrase))
    ]
    wanted = list(_wanted(query, analysis))
    if not wanted and not phrases:
        return None
    scored: Json = {"must": phrases} if phrases else {"minimum_should_match": 1}
    if wanted:
        scored["should"] = wanted
    return _found({**scored, "filter": _filters(clauses)}, limit) | {"timeout": _SEARCH_TIMEOUT}


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


def _wanted(query: LexicalQuery, analysis: Analysis) -> Iterator[Json]:
    """Each term counts in the text, and a little more in the title."""
    words = analysis.query_terms(query.text, query.languages)
    alone = " ".join(terms[0] for terms in words if len(terms) == 1)
    several = [terms for terms in words if len(terms) > 1]
    for field, boost in ((TEXT, 1.0), (TITLE, TITLE_BOOST)):
        if alone:
            yield {"match": {field: {"query": alone, "boost": boost}}}
        yield from (_synonyms(field, terms, boost) for terms in several)
    for terms in analysis.quoted_terms(query.text, query.languages):
        yield {"match_phrase": {TEXT: {"query": " ".join(terms), "boost": PHRASE_BOOST}}}


def _synonyms(field: str, terms: Sequence[str], boost: float) -> Json:
    """The terms of one word, which count as rare as the commonest of them: the server does so for what a pattern finds."""
    rewrite = f"top_terms_blended_freqs_{len(terms)}"
    return {"regexp": {field: {"value": "|".join(map(_literally, terms)), "rewrite": rewrite, "boost": boost}}}


def _literally(term: str) -> str:
    """As a pattern that finds this term: signs are operators otherwise."""
    return _SIGN.sub(r"\\\g<0>", term)


def _filters(clauses: Sequence[Clause]) -> list[Json]:
    return [_filter(clause) for clause in clauses]


def _filter(clause: Clause) -> Json:
    if isinstance(clause, AnyOf):
        return {"terms": {clause.field: list(clause.values)}}
    bounds = {"gte": clause.gte, "lt": clause.lt}
    return {"range": {clause.field: {name: value for name, value in bounds.items() if value is not None}}}


def _revision(key: RevisionKey) -> AnyOf:
    return AnyOf(filters.REVISION, (filters.revision_term(key),))


def _attempt(key: WriteKey) -> AnyOf:
    return AnyOf(filters.WRITE, (filters.write_term(key),))
