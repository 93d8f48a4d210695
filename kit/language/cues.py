"""Answer-type cues: does a sentence hold the kind of thing the question asks for?

Each cue looks only at what the sentence adds to the question: a year that the question itself names is no answer to "when".
"""

import itertools
import re
from collections.abc import Callable, Sequence

from kit.language.questions import AnswerKind, Question
from kit.language.terms import Token, words

_MONTHS = "january|february|march|april|may|june|july|august|september|october|november|december"
_TIME_WORDS = re.compile(
    rf"\b(\d{{1,2}}(st|nd|rd|th)?[- ](of )?({_MONTHS})|({_MONTHS}) \d|({_MONTHS})\b(?= of|,)|"
    r"\d{1,4}s?\b.{0,6}\b(bc|ad|bce|ce)\b|"
    r"\d{1,2}(st|nd|rd|th)[ -]centur|centur(y|ies)\b|\d{1,2}:\d{2}|\d{1,2} ?[ap]\.?m\b|monday|tuesday|wednesday|thursday|friday|"
    r"saturday|sunday|today|yesterday|tomorrow|midnight|noon|annually|daily|weekly|monthly|spring|summer|autumn|winter|"
    r"(one|two|three|four|five|six|seven|eight|nine|ten|\d+) (second|minute|hour|day|week|month|year|decade)s?\b)",
    re.IGNORECASE,
)
_YEAR = re.compile(r"^(1\d{3}|20\d{2}|[89]\d{2})$")
_OF_A_NAME = re.compile(r"[^\W\d_]-$")
_NUMBER_WORDS = words(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred hundreds thousand "
    "thousands million millions billion trillion dozen dozens half third quarter twice once double triple several "
    "none single pair couple percent majority"
)
_SPAN = re.compile(
    r"(\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|twelve|several|few|many)\b)[\w.,\- ]{0,14}"
    r"\b(second|minute|hour|day|night|week|month|year|decade|centur|generation)",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(because|due to|owing to|thanks to|as a result|result(s|ed|ing)? (of|from|in)|in order to|so that|so as to|therefore|hence|"
    r"thus|consequently|since|caus(e|es|ed|ing)|reasons?|led to|lead(s|ing)? to|why|to (avoid|prevent|ensure|protect|reduce|"
    r"increase|allow|gain|make|help|keep|save|stop|improve|provide)|attributed to|motivated|aim(s|ed)? (to|at)|for fear|"
    r"purpose|allow(s|ed|ing)|enabl(es|ed|ing)|prevent(s|ed|ing)?)\b",
    re.IGNORECASE,
)
_PLACE_BEFORE = re.compile(
    r"\b(in|at|near|from|to|of|into|across|towards?|around|outside|within|on|between|the)\s+(the\s+)?$", re.IGNORECASE
)

_NEGATION = re.compile(r"\b(not|never|cannot|none|neither|without|no longer)\b|n['’]t\b", re.IGNORECASE)
_LOOSE_NEGATION = re.compile(
    r"\b(no|nor|nothing|nobody|except\w*|exclud\w*|lack\w*|fail\w*|unable|refus\w*|prohibit\w*|forb\w*|den(y|ied|ies)|"
    r"reject\w*|instead|rather than|only|absen\w*|miss\w*|un(?!ited|it|ion|ique|ivers|til|der)\w+|less|least|avoid\w*)\b",
    re.IGNORECASE,
)

STRICT_KINDS = frozenset({AnswerKind.QUANTITY, AnswerKind.DURATION})
"""Kinds whose answer nearly always has a shape that a pattern sees: without it, it is no answer."""


def is_negated(text: str, *, loosely: bool = False) -> bool:
    """Whether `text` denies something; `loosely` also takes words that exclude, refuse or lack."""
    return bool(_NEGATION.search(text) or (loosely and _LOOSE_NEGATION.search(text)))


def is_year(word: str) -> bool:
    """Whether a word is a year, most likely."""
    return bool(_YEAR.match(word))


def is_number_word(word: str) -> bool:
    """Whether a word stands for a number or a share ("twelve", "half")."""
    return word.lower() in _NUMBER_WORDS


def names_a_time(text: str) -> bool:
    """Whether `text` has a date, a time of day, a season or a span of time."""
    return bool(_TIME_WORDS.search(text))


def type_cue(question: Question, text: str, found: Sequence[Token]) -> float:
    """How clearly `text` holds what `question` asks for, 0 to 1. `found`: its tokens. 0 for kinds without a cue."""
    cue = _CUES.get(question.kind)
    return cue(question, text, found) if cue else 0.0


def _new(question: Question, found: Sequence[Token]) -> list[Token]:
    stems = question.stems
    return [token for token in found if token.stem not in stems and not token.is_stopword]


def _time(question: Question, text: str, found: Sequence[Token]) -> float:
    if any(_YEAR.match(token.surface) for token in _new(question, found)):
        return 1.0
    return 0.8 if _TIME_WORDS.search(text) else 0.0


def _quantity(question: Question, text: str, found: Sequence[Token]) -> float:
    # The number of a name ("P-20", "COVID-19") counts nothing.
    new = [
        token for token in _new(question, found) if not _OF_A_NAME.search(text[max(0, token.start - 2) : token.start])
    ]
    if any(token.is_number and not _YEAR.match(token.surface) for token in new):
        return 1.0
    if any(
        token.surface.lower() in _NUMBER_WORDS or token.surface.lower().split("-")[0] in _NUMBER_WORDS
        for token in found
    ):
        return 0.8
    return 0.3 if any(token.is_number for token in new) else 0.0


def _duration(question: Question, text: str, found: Sequence[Token]) -> float:
    if _SPAN.search(text):
        return 1.0
    return 0.5 if any(token.is_number for token in _new(question, found)) else 0.0


def _person(question: Question, text: str, found: Sequence[Token]) -> float:
    del text
    names = [token for token in _new(question, found) if token.is_name]
    paired = any(right.start - left.end <= 2 for left, right in itertools.pairwise(names))
    if paired:
        return 1.0
    starts_with_name = bool(found) and found[0].surface[0].isupper() and not found[0].is_stopword
    return 0.7 if names else 0.3 * float(starts_with_name)


def _place(question: Question, text: str, found: Sequence[Token]) -> float:
    names = [token for token in _new(question, found) if token.is_name]
    if any(_PLACE_BEFORE.search(text[max(0, token.start - 16) : token.start]) for token in names):
        return 1.0
    return 0.5 if names else 0.0


_CUES: dict[AnswerKind, Callable[[Question, str, Sequence[Token]], float]] = {
    AnswerKind.TIME: _time,
    AnswerKind.QUANTITY: _quantity,
    AnswerKind.DURATION: _duration,
    AnswerKind.PERSON: _person,
    AnswerKind.PLACE: _place,
    AnswerKind.REASON: lambda _question, text, _found: float(_REASON.search(text) is not None),
}
