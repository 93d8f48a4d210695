"""Grades answers by rules: an option by its letter or its words; a short answer whatever its case, accents, small slips of
the pen, articles, and way of writing numbers."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

from kit.language.phrases import folded
from kit.language.terms import STOPWORDS, stem, tokens, words
from services.orchestrator.quizzes.numbers import numbers_in
from services.orchestrator.quizzes.questions import FALSE, TRUE, QuestionKind, QuizQuestion

_LETTER = re.compile(r"\(?([A-Za-z])[.)]?")
_LEAST_ALIKE = 0.8
"""Share of letters that two words have in common which are one with a slip of the pen."""
_LEAST_LETTERS = 4
_YES = words(
    "true yes t y richtig wahr ja stimmt vrai oui verdadero sí si vero verdadeiro sim waar да верно правда prawda tak doğru evet "
    "对 是 真 はい 正しい 예 참 صحيح نعم נכון כן"
)
_NO = words(
    "false no f n falsch nein faux non falso falsa não nao onwaar nee нет неверно ложь fałsz nie yanlış hayır "
    "错 否 假 いいえ 違う 아니오 거짓 خطأ لا לא"
)


@dataclass(frozen=True)
class Grade:
    """What became of one answer."""

    is_right: bool
    by: str
    """`option`, `words`, `spelling`, `number` or `model`; `nothing` of an empty answer."""


def grade(question: QuizQuestion, given: str) -> Grade:
    """The grade by rules. A short answer that rules call wrong may still be right in other words: see `may_be_right_otherwise`."""
    if not given.strip():
        return Grade(is_right=False, by="nothing")
    if question.kind is QuestionKind.MULTIPLE_CHOICE:
        return Grade(chosen_option(question, given) == question.answer, "option")
    if question.kind is QuestionKind.TRUE_FALSE:
        return Grade(truth(given) == question.answer, "option")
    return _short(question.answer, given)


def may_be_right_otherwise(question: QuizQuestion, given: str, graded: Grade) -> bool:
    """Whether a model may know better: a wrong short answer in words. Numbers are equal or not."""
    has_other_numbers = bool(numbers_in(question.answer)) and bool(numbers_in(given))
    return (
        question.kind is QuestionKind.SHORT_ANSWER
        and not graded.is_right
        and bool(given.strip())
        and not has_other_numbers
    )


def chosen_option(question: QuizQuestion, given: str) -> str | None:
    """The option that an answer names: by its words, or else its letter or its number. None where it names none."""
    wanted = _plain(given)
    for option in question.options:
        if _plain(option) == wanted:
            return option
    if letter := _LETTER.fullmatch(given.strip()):
        index = ord(letter[1].lower()) - ord("a")
        return question.options[index] if index < len(question.options) else None
    return None


def truth(given: str) -> str:
    """`true` or `false`, in several languages; empty where it is neither."""
    word = _plain(given)
    return TRUE if word in _YES else FALSE if word in _NO else ""


def _short(answer: str, given: str) -> Grade:
    if _plain(answer) == _plain(given):
        return Grade(is_right=True, by="words")
    expected, got = numbers_in(answer), numbers_in(given)
    if expected or got:
        if sorted(expected) != sorted(got):
            return Grade(is_right=False, by="number")
        own, others = _words(answer), _words(given)
        return Grade(is_right=not own or not others or _fit(own, others), by="number")
    own, others = _words(answer), _words(given)
    if {stem(each) for each in own} == {stem(each) for each in others}:
        return Grade(is_right=True, by="words")
    return Grade(is_right=len(own) == len(others) and _fit(own, others), by="spelling")


def _words(text: str) -> list[str]:
    """The words of an answer that mean something; all where none does."""
    found = [each.surface for each in tokens(text) if not each.is_number]
    return [each for each in found if each.lower() not in STOPWORDS] or found


def _fit(own: list[str], others: list[str]) -> bool:
    """Whether each word of the one has one like it in the other: "km" and "kilometres" begin alike."""
    return all(any(_are_alike(word, other) for other in others) for word in own)


def _are_alike(word: str, other: str) -> bool:
    left, right = _plain(word), _plain(other)
    if stem(left) == stem(right):
        return True
    shorter, longer = sorted((left, right), key=len)
    if len(shorter) <= 3:
        return bool(shorter) and _abbreviates(shorter, longer)
    return len(shorter) >= _LEAST_LETTERS and SequenceMatcher(None, left, right).ratio() >= _LEAST_ALIKE


def _abbreviates(short: str, word: str) -> bool:
    """Whether the letters of a unit stand in its name in this order, the first one first: "km", "kg", "m"."""
    letters = iter(word)
    return word.startswith(short[0]) and all(letter in letters for letter in short)


def _plain(text: str) -> str:
    """Case, accents, punctuation and white space aside."""
    return " ".join(re.findall(r"[^\W_]+", folded(text)))
