"""Finds names in a text by their capital letters: what a question is about, and whom a passage mentions besides. Scripts without
capital letters have no names here; what stands in quotation marks is a name in every script."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from kit.language.question_language import language_by_words
from kit.language.terms import STOPWORDS, Token, tokens, words
from kit.queries.shape import quoted

LONGEST_CHARS = 120
_PARTICLES = words(
    "of the de la le les du des da di del della do dos das von van der den zu zur zum af av al el bin ibn"
)
"""Lower-case words that a name may have inside: "Maria de la Paz"."""
_TITLE_PARTICLES = _PARTICLES | words("in on at for to a an with by from")
"""Those of titles, which questions have more often than places behind a name: "Walking on the Water"."""
_TITLE_BREAKS = frozenset({": ", " – ", " - "})
"""Between the parts of a title."""
_RANKS = words(
    "prince princess duke duchess king queen count countess earl baron baroness baronet marquis marquess marchioness emperor "
    "empress holy lord lady sir jr sr junior senior 1st 2nd 3rd bishop pope inc ltd llc gmbh князь граф герцог король"
)
"""A name may go on with one of these behind a comma: "Maurice, Prince of Orange"."""
_NO_NAMES = words(
    "january february march april may june july august september october november december monday tuesday wednesday thursday "
    "friday saturday sunday jan feb mar apr jun jul aug sep sept oct nov dec bc ad am pm i ii iii iv v vi "
    "januar februar märz mai juni juli oktober dezember января февраля марта апреля мая июня июля августа сентября октября ноября "
    "декабря"
)
_BRACKETED = re.compile(r"\s\([^()\n]{2,40}\)")
_POSSESSIVE = re.compile(r"['’]s?$")
_YEAR = re.compile(r"(?:1\d|20)\d\d")
_INITIAL_CHARS = 2
_GERMAN = "de"


@dataclass(frozen=True)
class Name:
    """A name where it stands in a text."""

    text: str
    start: int
    end: int
    stems: frozenset[str]
    """Of its words, without those that carry no content."""
    is_sure: bool = True
    """Whether a capital letter at the beginning of a sentence is not all that speaks for it."""


def find_names(text: str, *, is_question: bool = False) -> list[Name]:
    """The names of the text in order: runs of capitalised words, and what is quoted. A question's names are more often titles."""
    found = tokens(text)
    is_german = language_by_words(text.lower()) == _GERMAN
    # Every German noun has a capital letter.
    runs = [run for run in _runs(text, found, is_question=is_question) if not is_german or len(run) > 1]
    names = [_name(text, run, with_brackets=is_question) for run in runs]
    return _joined(text, [*_quoted_names(text, names, is_question=is_question), *names])


def _runs(text: str, found: Sequence[Token], *, is_question: bool) -> Iterator[list[Token]]:
    inner = _TITLE_PARTICLES if is_question else _PARTICLES
    run: list[Token] = []
    particles: list[Token] = []
    for token, following in zip_longest(found, found[1:]):
        last = particles[-1] if particles else run[-1] if run else None
        gap = text[last.end : token.start] if last else ""
        is_joined = last is None or _is_one_name(gap, last) or (is_question and gap in _TITLE_BREAKS)
        if run and is_joined and token.surface in inner:
            particles.append(token)
            continue
        is_number = token.is_number and not particles and (bool(run) or _leads_name(text, token, following))
        is_part = is_number or _begins_name(token) or (bool(run) and gap.startswith(".") and token.surface[0].isupper())
        if run and not (is_part and is_joined):
            yield run
            run = []
        if is_part:
            run = [*run, *particles, token] if run else [token]
        particles = []
        if run and _POSSESSIVE.search(token.surface) and run[-1] is token:
            yield run
            run = []
    if run:
        yield run


def _begins_name(token: Token) -> bool:
    if not token.surface[0].isupper():
        return False
    return token.is_name or token.surface.lower() not in STOPWORDS


def _leads_name(text: str, number: Token, following: Token | None) -> bool:
    """Whether a name begins with the number: "45 Fathers", "1st Baronet"; a year before a name is a date."""
    if following is None or _YEAR.fullmatch(number.surface) or not following.surface[0].isupper():
        return False
    return text[number.end : following.start] in ("", " ")


def _is_one_name(gap: str, before: Token) -> bool:
    return gap in ("", " ", "-", "–", " & ", "’", "'") or (
        gap in (". ", ".") and len(before.surface) <= _INITIAL_CHARS and before.surface[0].isupper()
    )


def _name(text: str, run: Sequence[Token], *, with_brackets: bool) -> Name:
    start, end = run[0].start, run[-1].end
    written = _POSSESSIVE.sub("", text[start:end])
    end = start + len(written)
    bracket = _BRACKETED.match(text, end) if with_brackets else None
    stems = frozenset(token.stem for token in run if not token.is_stopword)
    if bracket is not None and not bracket[0].strip(" ()").isdigit():
        end = bracket.end()
    is_sure = len(run) > 1 or run[0].is_name
    return Name(text[start:end], start, end, stems, is_sure)


def _quoted_names(text: str, names: Sequence[Name], *, is_question: bool) -> Iterator[Name]:
    for phrase in quoted(text):
        start = text.find(phrase)
        if (
            start >= 0
            and (is_question or phrase[0].isupper())
            and len(phrase) <= LONGEST_CHARS
            and not any(each.text == phrase for each in names)
        ):
            stems = frozenset(token.stem for token in tokens(phrase) if not token.is_stopword)
            yield Name(phrase, start, start + len(phrase), stems)


def _joined(text: str, names: Sequence[Name]) -> list[Name]:
    """The names in order, those inside of others left out, with what a rank behind a comma adds to them."""
    ordered = sorted(names, key=lambda name: (name.start, -name.end))
    outer: list[Name] = []
    for name in ordered:
        last = outer[-1] if outer else None
        if last is None or name.start >= last.end:
            if last is not None and text[last.end : name.start] == ", " and _has_rank(name):
                outer[-1] = Name(text[last.start : name.end], last.start, name.end, last.stems | name.stems)
            else:
                outer.append(name)
    return [name for name in outer if _says_something(name)]


def _has_rank(name: Name) -> bool:
    return name.text.split()[0].lower().rstrip(".") in _RANKS


def _says_something(name: Name) -> bool:
    said = [word.lower() for word in re.findall(r"\w+", name.text)]
    is_date = all(word in _NO_NAMES or word.isdigit() for word in said)
    return not is_date and len(name.text) <= LONGEST_CHARS and bool(name.stems)


def stems_of(text: str) -> frozenset[str]:
    """Stems of the words that carry content."""
    return frozenset(token.stem for token in tokens(text) if not token.is_stopword)


def distance(one: tuple[int, int], other: tuple[int, int]) -> int:
    """Characters between two spans; 0 where they touch or overlap."""
    (first, second) = sorted((one, other))
    return max(0, second[0] - first[1])
