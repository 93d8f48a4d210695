"""From a scope and a user's words to Elasticsearch's query language: the same meaning as `tantivy_query`.

The query parser of `query_string` is not used: any text a person types is a valid query here.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from kit.language.phrases import phrase_tokens
from services.retriever import filters
from services.retriever.adapters.elasticsearch_analysis import field_name, telling_analyser
from services.retriever.adapters.elasticsearch_mapping import EXACT, ORDINAL, STORED, TEXT, TITLE
from services.retriever.filters import AnyOf, Clause
from services.retriever.languages import analysers_of, prepared
from services.retriever.models import LexicalQuery, RevisionKey, WriteKey

Json = dict[str, Any]
TITLE_BOOST = 0.25
PHRASE_BOOST = 2.0
"""Both as in tantivy, where they were measured."""
_TIE_BREAK = 0.001
_MAX_WORDS = 64
_MAX_PHRASES = 4
_QUOTED = re.compile(r"[\"“”„«]([^\"“”„«»]{3,200})[\"“”„»]")
_SEARCH_TIMEOUT = "5s"
"""For the server to give a search up: nobody waits for it longer."""


def search_body(clauses: Sequence[Clause], query: LexicalQuery, limit: int) -> Json | None:
    """Chunks in scope that have all phrases and share a word with the text, scored by BM25. Without a text those that have
    the phrases; None when there is neither a word nor a phrase."""
    phrases = [
        {"match_phrase": {EXACT: " ".join(words)}} for phrase in query.must_phrases if (words := phrase_tokens(phrase))
    ]
    wanted = list(_wanted(query))
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
    return {"query": {"bool": condition}, "size": limit, "_source": [STORED], "track_total_hits": False}


def _wanted(query: LexicalQuery) -> Iterator[Json]:
    """Each word counts in the field of each language that is searched, and a little more in the title."""
    has_words = any(map(str.isalnum, query.text))
    quoted = [phrase for phrase in _QUOTED.findall(query.text) if len(phrase_tokens(phrase)) > 1][:_MAX_PHRASES]
    for analyser in analysers_of(query.languages) if has_words else ():
        text, title = (f"{field}.{field_name(analyser)}" for field in (TEXT, TITLE))
        words = dict.fromkeys(prepared(query.text, analyser).split())
        yield from _words(text, title, " ".join(islice(words, _MAX_WORDS)), telling_analyser(analyser))
        for phrase in quoted:
            yield {"match_phrase": {text: {"query": prepared(phrase, analyser), "boost": PHRASE_BOOST}}}


def _words(text: str, title: str, words: str, telling: str | None) -> Iterator[Json]:
    if telling is None:
        yield {"match": {text: {"query": words}}}
        yield {"match": {title: {"query": words, "boost": TITLE_BOOST}}}
        return
    # When none of the words means anything, the first condition holds for all chunks, and the second decides alone.
    means_it = {"match": {text: {"query": words, "analyzer": telling, "zero_terms_query": "all"}}}
    has_words = {"match": {text: {"query": words, "boost": _TIE_BREAK}}}
    yield {"bool": {"must": [means_it, has_words]}}
    yield {"match": {title: {"query": words, "analyzer": telling, "boost": TITLE_BOOST}}}


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
