"""BM25 of what was found, with the statistics of the collections that are searched. An engine chooses what is found, but weighs
terms and compares lengths by its whole index: a collection would rank in another way beside others."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from services.retriever.analysis.analyser import Analysis
from services.retriever.analysis.bm25 import K1, PHRASE_BOOST, TITLE_BOOST, B
from services.retriever.indexes.filters import COLLECTION, TENANT, Clause
from services.retriever.models import LexicalQuery

TEXT = "text"
TITLE = "title"
LENGTHS = {TEXT: "text_length", TITLE: "title_length"}
"""Columns of how many terms a chunk has in each field that is scored."""
_FIELDS = "\x1e"
_BETWEEN = "  "
"""Two spaces between terms: so that one in spaces is counted wherever it stands, also twice side by side."""


class Sought(NamedTuple):
    """What adds to the score of a chunk: terms side by side, one as a rule, in a field."""

    field: str
    terms: Sequence[str]
    weight: float


def corpus_clauses(clauses: Sequence[Clause]) -> list[Clause]:
    """Where words are counted: in the collections, whatever else narrows a search."""
    return [clause for clause in clauses if clause.field in (TENANT, COLLECTION)]


def sought_in(
    analysis: Analysis, query: LexicalQuery, weight: Callable[[str, Sequence[str]], float]
) -> Iterator[Sought]:
    """Each term in both fields, with the weight of the commonest of its word, and quoted phrases. `weight` says what a word with
    these terms is worth in a field, 0 where it does not occur."""
    for terms in analysis.query_terms(query.text, query.languages):
        for field, boost in ((TEXT, 1.0), (TITLE, TITLE_BOOST)):
            if weighs := weight(field, terms):
                yield from (Sought(field, [term], boost * weighs) for term in terms)
    for terms in analysis.quoted_terms(query.text, query.languages):
        yield Sought(TEXT, terms, PHRASE_BOOST * sum(weight(TEXT, [term]) for term in terms))


def idf(chunks: int, frequency: int) -> float:
    """As BM25 in both engines has it (Robertson and Zaragoza 2009)."""
    return math.log(1 + (max(chunks - frequency, 0) + 0.5) / (frequency + 0.5))


def kept_terms(fields: Iterable[Sequence[str]]) -> str:
    """The terms of a chunk's fields as they are kept beside it."""
    return _FIELDS.join(f" {_BETWEEN.join(terms)} " for terms in fields)


def read_kept_terms(kept: str) -> list[list[str]]:
    """The inverse of `kept_terms`."""
    return [text.split() for text in kept.split(_FIELDS)]


def scorer(names: Sequence[str], sought: Iterable[Sought], mean_lengths: Mapping[str, float]) -> Callable[[str], float]:
    """Of a chunk whose fields of these names were kept so (Robertson and Zaragoza 2009)."""
    needles: list[list[tuple[str, float]]] = [[] for _ in names]
    for name, terms, weight in sought:
        needles[names.index(name)].append((f" {_BETWEEN.join(terms)} ", weight * (K1 + 1)))
    means = [max(mean_lengths[name], 1e-9) for name in names]

    def score(kept: str) -> float:
        total = 0.0
        for text, wanted, mean in zip(kept.split(_FIELDS), needles, means, strict=True):
            saturation = K1 * (1 - B + B * _length(text) / mean)
            for needle, weight in wanted:
                if count := text.count(needle):
                    total += weight * count / (count + saturation)
        return total

    return score


def _length(text: str) -> int:
    """In terms, as both engines keep it: exact up to 40, then to four bits (SmallFloat of Lucene)."""
    count = text.count(_BETWEEN) + 1
    rest = count - 24
    if rest < 16:
        return count
    shift = rest.bit_length() - 4
    return 24 + ((rest >> shift) << shift)
