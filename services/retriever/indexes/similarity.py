"""Cosines that are not of one scale made comparable: of several embedding spaces, and of several languages in one.

Each model has a scale of its own: the question's own passage has a cosine of 0.57 with all-MiniLM-L6-v2 where any other has 0.03,
and of 0.60 with multilingual-e5-small (centred) where any other has 0.22 to 0.41, depending on the languages. What a cosine says
is how far it stands above those of passages that have nothing to do with the question, in units of how widely those are spread.

A multilingual model draws a question to passages of its own language: in a collection of several each language is searched on its
own, and what counts is how far a passage stands above others of its language.

Measured on XQuAD (nDCG@10), half of the paragraphs in English and half in Chinese, all with E5: English questions 0.62, Chinese
ones 0.50 with cosines as they are, 0.84 and 0.86 with this; with German in place of Chinese 0.86 and 0.77 against 0.93 and 0.92.
Where the English half lies in the space of MiniLM, English questions: 0.48 to 0.50 as they are, 0.70 to 0.73 with the min-max of
each list, 0.84 to 0.89 with this (docs/adr/0015).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from services.retriever.indexes.stored_chunk import Candidate
from services.retriever.models import EmbeddingSpace, Languages

_TAIL_FROM_RANK = 20
"""What ranks lower in a list has mostly nothing to do with the question."""
_TRUST = 5
"""Passages of a list's tail that weigh as much as what is known of the model."""


@dataclass(frozen=True)
class Unrelated:
    """Cosines of a question with passages that have nothing to do with it."""

    mean: float
    spread: float
    """Their standard deviation."""

    def relevance(self, cosine: float) -> float:
        """How far the cosine stands above them, in their spreads."""
        return (cosine - self.mean) / self.spread


_UNRELATED = {
    "all-MiniLM-L6-v2": Unrelated(0.03, 0.10),
    "multilingual-e5-small": Unrelated(0.28, 0.067),
}
"""By the beginning of the model's name; means over the questions of XQuAD in nine languages."""
_OF_OTHER_MODELS = Unrelated(0.0, 0.10)
_SEARCHED_BY_LANGUAGE = ("multilingual-e5-small",)
"""Models that draw a question to its own language, by the beginning of their names. Their indexes know each chunk's language."""
_MOST_LANGUAGES = 4
"""That are searched on their own; the others together are one more search."""
_LEAST_SHARE = 0.02
"""Of the documents, for a language to be searched on its own. Few passages of thousands in another language are a detector's errors
(lists of figures, names) as often as not. The best of a few is less similar than the best of many that have as little to do with
the question, and would by its own level be taken for as good: on SciFact, where a few were so held for German and others, vectors
alone had an nDCG@10 of 0.586 in place of 0.651."""


@dataclass(frozen=True)
class Group:
    """Chunks whose cosines are of one scale: of a space, and where languages differ, of some of them."""

    space: EmbeddingSpace
    languages: Languages | None = None


def groups_of(space: EmbeddingSpace, documents: Mapping[str, int]) -> list[Group]:
    """What to search in a space, given how many documents each language has, the most common first."""
    least = _LEAST_SHARE * sum(documents.values())
    common = tuple(language for language, count in documents.items() if count >= least)[:_MOST_LANGUAGES]
    if len(common) < 2 or not _model(space).startswith(_SEARCHED_BY_LANGUAGE):
        return [Group(space)]
    return [*(Group(space, Languages((code,))) for code in common), Group(space, Languages(common, are_left_out=True))]


class Levels:
    """What the scores of one query's candidates go by."""

    def __init__(self, levels: Mapping[Group, Unrelated]) -> None:
        self._levels = levels

    def of(self, space: EmbeddingSpace, language: str) -> Unrelated | None:
        """That of a chunk; None where its group was not searched."""
        rest = None
        for group, level in self._levels.items():
            if group.space != space:
                continue
            if group.languages is None or (not group.languages.are_left_out and language in group.languages.codes):
                return level
            if group.languages.are_left_out and language not in group.languages.codes:
                rest = level
        return rest


def comparable(lists: Mapping[Group, Sequence[Candidate]]) -> tuple[list[Candidate], Levels]:
    """One list out of those of several groups for one query, best first, and what the scores go by. Scores are relevances, and each
    candidate keeps its cosine."""
    levels = {group: _unrelated(group.space, hits) for group, hits in lists.items()}
    merged = [
        replace(hit, score=levels[group].relevance(hit.score), cosine=hit.score)
        for group, hits in lists.items()
        for hit in hits
    ]
    return sorted(merged, key=lambda hit: -hit.score), Levels(levels)


def _unrelated(space: EmbeddingSpace, hits: Sequence[Candidate]) -> Unrelated:
    """Of this query in this group: what is known of the model, corrected by the tail of the list."""
    model = _model(space)
    known = next((each for name, each in _UNRELATED.items() if model.startswith(name)), _OF_OTHER_MODELS)
    tail = [hit.score for hit in hits[_TAIL_FROM_RANK:]]
    return replace(known, mean=(sum(tail) + _TRUST * known.mean) / (len(tail) + _TRUST))


def _model(space: EmbeddingSpace) -> str:
    return space.model.rsplit("/", 1)[-1]
