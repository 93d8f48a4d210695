"""Searches the documentation of this release by words. It is part of the package, so that it always describes what is installed."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kit.language.terms import tokens
from services.tools.web.sections import PagePassage, passages_of

_IN_PACKAGE = Path(__file__).with_name("pages")
"""Where an installed package has the pages."""
_IN_SOURCE = Path(__file__).resolve().parents[3] / "docs"
"""Where a source tree has them."""
_LEFT_OUT = ("adr", "cluster-report.md", "benchmarks.md")
"""Pages that say how things came about, and not how they are."""
_K1, _B = 1.2, 0.75
"""BM25 as usual: Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009)."""
_HEADING_WEIGHT = 2


@dataclass(frozen=True)
class ManualPage:
    """A page of the documentation."""

    name: str
    """Its path below docs: operations/keys.md."""
    title: str
    text: str


@dataclass(frozen=True)
class ManualSection:
    """A part of a page."""

    page: ManualPage
    ordinal: int
    part: PagePassage


class Manual:
    """The pages, cut into sections that can be cited."""

    def __init__(self, pages: Sequence[ManualPage]) -> None:
        self._sections = [
            ManualSection(page, ordinal, part) for page in pages for ordinal, part in enumerate(passages_of(page.text))
        ]
        self._terms = [_terms_of(each) for each in self._sections]
        self._lengths = [sum(each.values()) for each in self._terms]
        self._mean_length = sum(self._lengths) / max(1, len(self._lengths))
        self._frequency = Counter(term for each in self._terms for term in each)

    def find(self, question: str, limit: int) -> Sequence[ManualSection]:
        """The sections that fit the words best; none that has no word of the question."""
        asked = {token.stem for token in tokens(question) if not token.is_stopword}
        scored = [(self._score(place, asked), -place) for place in range(len(self._sections))]
        best = sorted((each for each in scored if each[0] > 0), reverse=True)[:limit]
        return [self._sections[-place] for _, place in best]

    def _score(self, place: int, asked: set[str]) -> float:
        terms, count = self._terms[place], len(self._sections)
        norm = _K1 * (1 - _B + _B * self._lengths[place] / self._mean_length)
        return sum(
            math.log(1 + (count - self._frequency[term] + 0.5) / (self._frequency[term] + 0.5))
            * (terms[term] * (_K1 + 1) / (terms[term] + norm))
            for term in asked & terms.keys()
        )


@cache
def load_manual() -> Manual:
    """The manual of this release. Blocking: it reads and cuts some forty pages."""
    folder = _IN_PACKAGE if _IN_PACKAGE.is_dir() else _IN_SOURCE
    paths = sorted(each for each in folder.rglob("*.md") if each.relative_to(folder).parts[0] not in _LEFT_OUT)
    return Manual([_page(path.relative_to(folder).as_posix(), path.read_text("utf-8")) for path in paths])


def _page(name: str, text: str) -> ManualPage:
    first = text.lstrip().partition("\n")[0]
    return ManualPage(name, first.lstrip("# ") if first.startswith("#") else name, text)


def _terms_of(section: ManualSection) -> Counter[str]:
    headings = " ".join((section.page.title, *section.part.heading_path))
    counted = Counter(token.stem for token in tokens(section.part.text) if not token.is_stopword)
    for token in tokens(headings):
        if not token.is_stopword:
            counted[token.stem] += _HEADING_WEIGHT
    return counted
