"""How the words of a question lie in a unit: in their order, in one clause, with the same small words before them, or with
others in their places. Units about the right thing that do not answer mostly hold the question's words and arrange them
otherwise (Rajpurkar, Jia and Liang, arXiv:1806.03822, table 1). NaN where nothing is known."""

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kit.language.cues import is_number_word, is_year, names_a_time
from kit.language.opposites import opposed
from kit.language.questions import AnswerKind, Question
from kit.language.terms import Token, tokens, words
from services.orchestrator.without_model.features import Candidate, WeighedCandidates

FEATURES = (
    "question_names",
    "word_order",
    "opposites_in_unit",
    "opposites_in_passage",
    "answer_distance",
    "missing_numbers",
    "missing_words_in_passage",
    "missing_terms_nearby",
    "clause_coverage",
    "pair_distance",
    "replaced",
    "relations_missing",
    "relations_kept",
    "place_in_passage",
)
_UNKNOWN = math.nan
_MOST_QUESTION_WORDS, _MOST_UNIT_WORDS = 60, 200
"""Words that are put in order: their product is the time it takes."""
_NO_ANSWER, _UNSURE_ANSWER = 40.0, 20.0
"""Distances of an answer that is not there, or that only a pattern sees."""
_SILENT = words(
    "what which who whom whose when where why how is are was were be been being am do does did done doing have has had having can "
    "could may might must shall should will would the a an"
)
"""Words whose place a question changes."""
_RELATIONS = words(
    "before after during until since under over between within without against above below instead into from by to of in on at "
    "with for through as besides except"
)
_QUANTIFIERS = words("only all both each every first last more most less least never always other than")
_DETERMINERS = words("the a an his her its their")
_CLAUSES = re.compile(r"[,;:()–—]|\b(?:and|but|while|although|though|whereas|which|who|because)\b")


@dataclass(frozen=True)
class _Aligned:
    """A question and a unit, in words."""

    question: Question
    evidence: WeighedCandidates
    candidate: Candidate
    asked: Sequence[Token]
    found: Sequence[Token]

    @property
    def stems(self) -> frozenset[str]:
        return frozenset(token.stem for token in self.found)


def read_alignment(question: Question, evidence: WeighedCandidates, candidate: Candidate) -> list[float]:
    """The features of `candidate`, in order. Some 0.2 ms."""
    aligned = _Aligned(question, evidence, candidate, tokens(question.text), tokens(candidate.unit.text))
    passage = [each for each in evidence.candidates if each.passage.number == candidate.passage.number]
    in_passage = frozenset[str]().union(*(each.stems for each in passage))
    covered = frozenset[str]().union(*(each.covered for each in passage))
    missing = [term for term in question.terms if term.stem not in covered]
    stems = aligned.stems
    return [
        float(sum(term.is_exact for term in question.terms)),
        _word_order(aligned),
        float(sum(opposed(token.stem, stems) for token in aligned.asked)),
        float(sum(opposed(token.stem, in_passage) for token in aligned.asked)),
        _answer_distance(aligned),
        float(sum(term.is_number and term.stem not in candidate.covered for term in question.terms)),
        float(sum(not term.is_exact for term in missing)),
        float(sum(term.stem not in candidate.nearby for term in question.terms)),
        _clause_coverage(aligned),
        _pair_distance(aligned),
        float(_replaced(aligned)),
        _relations_missing(aligned),
        _relations_kept(aligned),
        float(candidate.index),
    ]


def _word_order(aligned: _Aligned) -> float:
    """Share of the question's words that stand in the unit in the same order (longest common subsequence)."""
    asked = [token.stem for token in aligned.asked if token.surface.lower() not in _SILENT][:_MOST_QUESTION_WORDS]
    found = [token.stem for token in aligned.found[:_MOST_UNIT_WORDS]]
    row = [0] * (len(found) + 1)
    for word in asked:
        above, row = row, [0]
        for place, other in enumerate(found):
            row.append(above[place] + 1 if word == other else max(above[place + 1], row[place]))
    return row[-1] / len(asked) if asked else _UNKNOWN


def _answer_distance(aligned: _Aligned) -> float:
    """Words between the kind of thing that is asked for and a word of the question."""
    kind, stems = aligned.question.kind, aligned.question.stems
    new = [(place, token) for place, token in enumerate(aligned.found) if token.stem not in stems]
    numbers = [(place, token) for place, token in new if token.is_number or is_number_word(token.surface)]
    match kind:
        case AnswerKind.QUANTITY | AnswerKind.DURATION:
            places = [place for place, token in numbers if not is_year(token.surface)]
        case AnswerKind.TIME:
            places = [place for place, token in numbers if is_year(token.surface)]
            if not places:
                return _UNSURE_ANSWER if names_a_time(aligned.candidate.unit.text) else _NO_ANSWER
        case AnswerKind.PERSON | AnswerKind.PLACE:
            places = [place for place, token in new if token.is_name]
        case _:
            return _UNKNOWN
    held = [place for place, token in enumerate(aligned.found) if token.stem in stems]
    return float(min((abs(place - other) for place in places for other in held), default=_NO_ANSWER))


def _clause_coverage(aligned: _Aligned) -> float:
    """The most of the question's weight that one clause holds."""
    clauses = _CLAUSES.split(aligned.candidate.unit.text)
    return max(aligned.evidence.share({token.stem for token in tokens(clause)}) for clause in clauses)


def _pair_distance(aligned: _Aligned) -> float:
    """Mean distance in the unit of two words that are neighbours in the question."""
    places = _places(aligned.found)
    distances = [
        min(abs(one - other) for one in places[left.stem] for other in places[right.stem])
        for left, right in itertools.pairwise(aligned.question.terms)
        if left.stem in places and right.stem in places
    ]
    return sum(distances) / len(distances) if distances else _UNKNOWN


def _replaced(aligned: _Aligned) -> int:
    """Words beside which the question has a word that the unit lacks, and the unit another one ("modern" and "medieval Europe")."""
    places, stems = _places(aligned.found), aligned.question.stems

    def has_another(place: int) -> bool:
        if not 0 <= place < len(aligned.found):
            return False
        return not aligned.found[place].is_stopword and aligned.found[place].stem not in stems

    count = 0
    for left, right in itertools.pairwise(aligned.asked):
        if left.is_stopword or right.is_stopword:
            continue
        if left.stem not in places and any(has_another(place - 1) for place in places.get(right.stem, ())):
            count += 1
        if right.stem not in places and any(has_another(place + 1) for place in places.get(left.stem, ())):
            count += 1
    return count


def _places(found: Sequence[Token]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for place, token in enumerate(found):
        places.setdefault(token.stem, []).append(place)
    return places


def _relations_missing(aligned: _Aligned) -> float:
    """Share of the question's prepositions and quantifiers that the unit lacks."""
    small = [token.stem for token in aligned.asked if token.surface.lower() in _RELATIONS | _QUANTIFIERS]
    return sum(each not in aligned.stems for each in small) / len(small) if small else _UNKNOWN


def _relations_kept(aligned: _Aligned) -> float:
    """Share of the question's words behind a preposition that stand behind the same one in the unit ("before the war")."""
    stems, found = aligned.stems, _relations(aligned.found)
    asked = [pair for pair in _relations(aligned.asked) if pair[1] in stems]
    return sum(pair in found for pair in asked) / len(asked) if asked else _UNKNOWN


def _relations(found: Sequence[Token]) -> set[tuple[str, str]]:
    pairs: set[tuple[str, str]] = set()
    relation = ""
    for token in found:
        word = token.surface.lower()
        if word in _RELATIONS:
            relation = word
        elif word not in _DETERMINERS:
            if relation:
                pairs.add((relation, token.stem))
            relation = ""
    return pairs
