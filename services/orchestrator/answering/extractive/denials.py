"""A yes or no question that is answered by another number: "Was it built in 2007?" by "It was built in 1998"."""

from dataclasses import dataclass

from kit.language.cues import is_year
from kit.language.questions import AnswerKind, Question
from kit.language.terms import tokens
from services.orchestrator.answering.extractive.features import Candidate


@dataclass(frozen=True)
class _Count:
    """A number of a text, with what it counts."""

    stem: str
    is_year: bool
    before: str
    """The word right before it, lower-case: "at" 7."""
    behind: str
    """Stem of the content word right behind it: 2 "euros"; empty where there is none."""

    def is_of_the_same_as(self, other: "_Count") -> bool:
        """Whether both are years, count the same, or stand behind the same word and count nothing."""
        if self.is_year or other.is_year:
            return self.is_year and other.is_year
        if self.behind or other.behind:
            return self.behind == other.behind
        return bool(self.before) and self.before == other.before


def tells_another_number(read: Question, best: Candidate) -> bool:
    """Whether the unit has, of what the question says a number of, another number, and is about all else that is asked."""
    missing = [term for term in read.terms if term.stem not in best.about]
    if read.kind is not AnswerKind.YES_NO or not missing or not all(term.is_number for term in missing):
        return False
    stems = {term.stem for term in missing}
    others = [count for count in _counts(best.unit.text) if count.stem not in read.stems]
    return all(
        any(count.is_of_the_same_as(other) for other in others) for count in _counts(read.text) if count.stem in stems
    )


def _counts(text: str) -> list[_Count]:
    found = tokens(text)
    beside = zip([None, *found], found, [*found[1:], None], strict=False)
    return [
        _Count(
            number.stem,
            is_year(number.surface),
            left.surface.lower() if left and text[left.end : number.start] == " " else "",
            right.stem
            if right and not right.is_stopword and not right.is_number and text[number.end : right.start] in (" ", "-")
            else "",
        )
        for left, number, right in beside
        if number.is_number
    ]
