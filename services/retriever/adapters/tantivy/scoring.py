"""BM25 of what was found, with the statistics of the collections that are searched. tantivy chooses what is found, but takes the
length of a chunk for long or short by the mean of the whole index: a collection would rank in another way beside shorter ones."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from services.retriever.analysis.bm25 import K1, B

_FIELDS = "\x1e"
_BETWEEN = "  "
"""Two spaces between terms: so that one in spaces is counted wherever it stands, also twice side by side."""


class Sought(NamedTuple):
    """What adds to the score of a chunk: terms side by side, one as a rule, in a field."""

    field: str
    terms: Sequence[str]
    weight: float


def kept_terms(fields: Iterable[Sequence[str]]) -> str:
    """The terms of a chunk's fields as they are kept beside it."""
    return _FIELDS.join(f" {_BETWEEN.join(terms)} " for terms in fields)


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
