"""Units that another unit supersedes: both hold the same words of the question, and one of them speaks of something else than
what is asked for: of then and not of now, of a part and not of the whole, of what is not so, of a namesake. It is left out of the
answer as long as the other is there. Where no other is, it stays: it may be all that the documents say."""

import calendar
import enum
import itertools
import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from kit.language.cues import SHAPED_KINDS, is_negated, is_year
from kit.language.history import asks_for_the_latest, asks_of_today, tells_of_the_past
from kit.language.question_language import language_by_words
from kit.language.questions import AnswerKind, Question
from kit.language.sentences import UnitKind
from kit.language.terms import STOPWORDS, Token, stem, tokens, words
from services.orchestrator.answering.extractive.features import Candidate, WeighedCandidates
from services.orchestrator.answering.extractive.rows import fields, is_row, names_a_whole
from services.orchestrator.answering.extractive.scored import Scored

MOST_BEHIND = 3.0
"""A unit worth this much less than another is no rival of it: that it holds the same words is chance. A choice."""
MOST_BEHIND_ITS_SUBJECT = 4.0
"""The same of a unit that goes on from another, which holds the name and is worth more for it."""
_ONE_FACT = frozenset(
    {
        AnswerKind.PERSON,
        AnswerKind.TIME,
        AnswerKind.PLACE,
        AnswerKind.QUANTITY,
        AnswerKind.DURATION,
        AnswerKind.DEFINITION,
        AnswerKind.FACT,
    }
)
"""What asks for one thing that is so. "Is it allowed?" is answered by "It is not" as well."""
_GERMAN = "de"
_VERSION = re.compile(
    r"(?:\b(?:v|versi[oó]n\w*|version\w*|release|edition|fassung|верси\w+)|版本)[\s.:]*(\d{1,4}(?:\.\d{1,4}){0,3})(?![\d.,]*\d)",
    re.IGNORECASE,
)
"""The number must be said to be one of a version: 2.50 may be a price."""
_LONGER_NAME = re.compile(
    r"(?<![^\W\d_])(?!(?:Republic|Kingdom|Union|Federation|Commonwealth|Emirate|Sultanate|States?|Province|County|Region|District"
    r"|Municipality|City|Town|Village|University|Isle|Principality|Duchy)\b)(?P<first>[^\W\d_a-z][^\W\d_]+) of (?:the )?\Z"
)
"""What makes a name the end of another one: "Port of" Spain. The Republic of Ghana is Ghana."""
_MONTHS = frozenset(stem(month) for month in calendar.month_name if month)
_NOT_ONLY = re.compile(r"\bnot (only|just|merely|necessarily)\b", re.IGNORECASE)
_PARTS = words("each every per by which highest lowest most least largest smallest jede jeder chaque cada")
"""What asks for parts, or compares them."""
_TITLES = words("mr mrs ms dr prof sir dame lord lady king queen president captain saint st")


class Flaw(enum.Enum):
    """How a unit that holds the words of a question speaks of something else."""

    PAST = "past"
    DENIED = "denied"
    PART = "part"
    NAMESAKE = "namesake"
    UNNAMED = "unnamed"
    ANOTHER_YEAR = "another year"
    ANOTHER_KIND = "another kind"
    EARLIER = "earlier"


def without_superseded(question: Question, ranked: Sequence[Scored]) -> list[Scored]:
    """`ranked` (best first) without the units that another supersedes; at least one is left."""
    flaws = {id(each): _flaws(question, each.candidate, ranked) for each in ranked}
    fitting = [each for each in ranked if Flaw.NAMESAKE not in flaws[id(each)]]
    kept = [each for each in ranked if not any(_goes_on_from(other, each) for other in fitting)]
    kept = [
        each
        for each in kept
        if not any(
            flaws[id(each)] - flaws[id(other)] and not flaws[id(other)] - flaws[id(each)] and _says_as_much(other, each)
            for other in kept
        )
    ]
    return [kept[0], *(each for each in kept[1:] if Flaw.NAMESAKE not in flaws[id(each)])]


def _goes_on_from(other: Scored, named: Scored) -> bool:
    """Whether the other unit says of what this one names something that is asked for: this one is then shown before it."""
    left, right = other.candidate, named.candidate
    follows = left.antecedent and (left.passage.number, left.antecedent_index) == (right.passage.number, right.index)
    adds = left.covered - right.covered and left.cue >= right.cue
    return bool(follows and adds) and other.value >= named.value - MOST_BEHIND_ITS_SUBJECT


def judged_with_its_antecedent(evidence: WeighedCandidates, best: Scored, ranked: Sequence[Scored]) -> Scored:
    """The best unit as one with the sentence that it goes on from, where it has taken that one's place: both will be shown."""
    for other in ranked:
        if other is not best and _goes_on_from(best, other):
            candidate, named = best.candidate, other.candidate
            covered = candidate.covered | named.covered
            coverage = max(candidate.coverage, evidence.share(covered))
            joined = replace(
                candidate,
                unit=replace(candidate.unit, text=f"{named.unit.text} {candidate.unit.text}"),
                covered=covered,
                coverage=coverage,
                context=max(0.0, candidate.context + candidate.coverage - coverage),
            )
            similar = [each.semantic for each in (best, other) if each.semantic is not None]
            return replace(best, candidate=joined, semantic=max(similar, default=None))
    return best


def speaks_of_a_namesake(question: Question, candidate: Candidate) -> bool:
    """Whether the unit is about another one than the question: "Apollo 11" and "Apollo 13", "Ada Byron" and "Anne Byron", in a row
    "Spain" and "Port of Spain" or "Aquila Three" and "Aquila One", or "He was …" behind a sentence about somebody else."""
    return (
        _has_another_number(question, candidate)
        or _has_another_name(question, candidate)
        or _points_elsewhere(question, candidate)
        or _has_a_longer_name(question, candidate)
        or _has_another_second_name(question, candidate)
    )


def speaks_of_others_only(question: Question, candidate: Candidate) -> bool:
    """Whether the unit names something, and neither it nor its titles anything that the question names. German nouns tell nothing:
    all look like names."""
    asked = {term.stem for term in question.terms if term.is_name}
    return (
        _names_others_only(question, candidate)
        and not asked & candidate.about
        and language_by_words(question.text.lower()) != _GERMAN
    )


def only_names(question: Question, candidate: Candidate) -> bool:
    """Whether the unit, with its titles, has of the question nothing but names, and nothing of the kind that is asked for: "Her
    coach is Astrid Lie" says neither when nor where she was born. German nouns tell nothing: all look like names."""
    names = {term.stem for term in question.terms if term.is_exact}
    return (
        question.kind in SHAPED_KINDS | {AnswerKind.PLACE}
        and not candidate.cue
        and bool(names & candidate.about)
        and bool(question.stems - names)
        and candidate.about <= names
        and language_by_words(question.text.lower()) != _GERMAN
    )


def _points_elsewhere(question: Question, candidate: Candidate) -> bool:
    """Whether the unit points back to a sentence that names something, and none of the names of the question."""
    names = {term.stem for term in question.terms if term.is_name}
    return (
        bool(candidate.antecedent and names and candidate.covered)
        and not names & candidate.about
        and any(
            token.is_name or (not token.is_stopword and token.surface[0].isupper())
            for token in tokens(candidate.antecedent)
        )
    )


def _says_as_much(other: Scored, flawed: Scored) -> bool:
    """Whether the other unit holds, with what it is about, each word of the question that the flawed one holds, and as clearly
    the kind of thing that is asked for."""
    left, right = other.candidate, flawed.candidate
    holds = right.covered and right.covered <= left.about and left.cue >= right.cue
    return bool(holds) and other.value >= flawed.value - MOST_BEHIND and left.unit.text != right.unit.text


def _flaws(question: Question, candidate: Candidate, ranked: Sequence[Scored]) -> frozenset[Flaw]:
    text = candidate.unit.text
    found: set[Flaw] = set()
    if speaks_of_a_namesake(question, candidate):
        found.add(Flaw.NAMESAKE)
    if question.kind not in _ONE_FACT:
        return frozenset(found)
    title = f"{' '.join(candidate.passage.heading_path[-1:])} {candidate.unit.heading}"
    if asks_of_today(question.text) and tells_of_the_past(text, title):
        found.add(Flaw.PAST)
    if not is_negated(question.text, loosely=True) and is_negated(_NOT_ONLY.sub("", text)):
        found.add(Flaw.DENIED)
    if _is_part(question, candidate, ranked):
        found.add(Flaw.PART)
    if _names_others_only(question, candidate):
        found.add(Flaw.UNNAMED)
    if {term.stem for term in question.terms if is_year(term.surface)} - candidate.about:
        found.add(Flaw.ANOTHER_YEAR)
    if question.kind in SHAPED_KINDS and not candidate.cue:
        found.add(Flaw.ANOTHER_KIND)
    if asks_for_the_latest(question.text) and any(_came_later(each.candidate, candidate) for each in ranked):
        found.add(Flaw.EARLIER)
    return frozenset(found)


def _names_others_only(question: Question, candidate: Candidate) -> bool:
    """Whether the unit, with what it points back to, names something and nothing that the question names."""
    asked = {term.stem for term in question.terms if term.is_name}
    if candidate.unit.kind is UnitKind.ROW:
        return False
    named = {token.stem for token in tokens(f"{candidate.antecedent} {candidate.unit.text}") if token.is_name}
    held = candidate.covered | {token.stem for token in tokens(candidate.antecedent)}
    return bool(asked and named) and not asked & held


def _came_later(other: Candidate, candidate: Candidate) -> bool:
    """Whether two units say the same of different versions, or else of different years, and the other one of a later: "Version 2.0
    appeared in 2021", "Version 3.1 appeared in 2024"."""
    if other.passage.document_id != candidate.passage.document_id or _template(other) != _template(candidate):
        return False
    versions = [_versions(each.unit.text) for each in (candidate, other)]
    if all(versions):
        return versions[0] < versions[1]
    years = [
        max((token.surface for token in tokens(each.unit.text) if is_year(token.surface)), default="")
        for each in (candidate, other)
    ]
    return all(years) and years[0] < years[1]


def _template(candidate: Candidate) -> frozenset[str]:
    """The words of a unit without what counts or dates."""
    return frozenset(
        token.stem
        for token in tokens(candidate.unit.text)
        if not token.is_stopword and token.stem not in _MONTHS and not any(map(str.isdigit, token.surface))
    )


def _versions(text: str) -> list[tuple[int, ...]]:
    return [tuple(map(int, found.split("."))) for found in _VERSION.findall(text)]


def _is_part(question: Question, candidate: Candidate, ranked: Sequence[Scored]) -> bool:
    """Whether the unit is a row of a part that the question does not name, of a table that has a row of the whole."""
    key = _key(candidate)
    if key is None or names_a_whole(key[1]):
        return False
    named = {token.stem for token in tokens(" ".join(key))} & question.stems
    asks_for_parts = any(token.surface.lower() in _PARTS for token in tokens(question.text))
    if named or asks_for_parts:
        return False
    wholes = (
        _key(each.candidate) for each in ranked if each.candidate.passage.document_id == candidate.passage.document_id
    )
    return any(other is not None and other[0] == key[0] and names_a_whole(other[1]) for other in wholes)


def _key(candidate: Candidate) -> tuple[str, str] | None:
    """Column and cell that say what a row is about: its first."""
    if candidate.unit.kind is not UnitKind.ROW or not is_row(candidate.unit.text):
        return None
    return fields(candidate.unit.text)[0]


def _has_another_number(question: Question, candidate: Candidate) -> bool:
    """Whether behind a word of the question there stands another number than in the question, and that one nowhere."""
    text = f"{candidate.antecedent} {candidate.unit.text}"
    asked, found = tokens(question.text), tokens(text)
    numbers = {token.stem for token in asked if token.is_number}
    if numbers <= {token.stem for token in found}:
        return False
    pairs = _numbered(question.text, asked)
    return any(
        word == other and number not in candidate.about and another not in numbers
        for word, number in pairs
        for other, another in _numbered(text, found)
    )


def _numbered(text: str, found: Sequence[Token]) -> list[tuple[str, str]]:
    """Words with the number right behind them."""
    return [
        (left.stem, right.stem)
        for left, right in itertools.pairwise(found)
        if right.is_number
        and not left.is_number
        and not left.is_stopword
        and text[left.end : right.start] in (" ", "-", "")
    ]


def _has_another_name(question: Question, candidate: Candidate) -> bool:
    text = f"{candidate.antecedent} {candidate.unit.text}"
    found = tokens(text)
    for run in _runs(question.text, [token for token in tokens(question.text) if token.is_name]):
        if len(run) > 1 and not run <= candidate.about and _names_beside(text, found, run, question.stems):
            return True
    return False


def _has_another_second_name(question: Question, candidate: Candidate) -> bool:
    """Whether a row has the first word of a name of the question with another word behind it, and that of the question nowhere."""
    names = [token for token in tokens(question.text) if token.is_name]
    lacking = [run for run in _runs(question.text, names) if run - candidate.about]
    if candidate.unit.kind is not UnitKind.ROW or not lacking:
        return False
    text = candidate.unit.text
    followed = {
        left.stem
        for left, right in itertools.pairwise(tokens(text))
        if text[left.end : right.start] == " " and right.surface[0].isupper() and right.stem not in question.stems
    }
    return any(run & followed for run in lacking)


def _has_a_longer_name(question: Question, candidate: Candidate) -> bool:
    """Whether the cells of a row have the names of the question within longer ones only: "Port of Spain"."""
    if candidate.unit.kind is not UnitKind.ROW:
        return False
    text = f"{candidate.caption}; {candidate.unit.text}"
    columns = {token.stem for name, _ in fields(text) for token in tokens(name)}
    names = {term.stem for term in question.terms if term.is_name} - columns
    found = [token for token in tokens(text) if token.stem in names]
    return bool(found) and all(_is_tail(text[: token.start], question) for token in found)


def _is_tail(before: str, question: Question) -> bool:
    """Whether what stands right before a name makes it the end of a longer one, whose beginning the question does not have."""
    longer = _LONGER_NAME.search(before)
    return longer is not None and stem(longer["first"]) not in question.stems


def _runs(text: str, names: Sequence[Token]) -> list[frozenset[str]]:
    """Names of several words, as stems."""
    runs: list[list[Token]] = []
    for token in names:
        if runs and text[runs[-1][-1].end : token.start] == " ":
            runs[-1].append(token)
        else:
            runs.append([token])
    return [frozenset(token.stem for token in run) for run in runs]


def _names_beside(text: str, found: Sequence[Token], run: frozenset[str], asked: Collection[str]) -> bool:
    """Whether the last word of the name has another first name before it."""
    return any(
        right.stem in run
        and right.surface[0].isupper()
        and left.surface[0].isupper()
        and left.stem not in asked
        and left.surface.lower() not in STOPWORDS | _TITLES
        and text[left.end : right.start] == " "
        for left, right in itertools.pairwise(found)
    )
