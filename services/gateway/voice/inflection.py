"""How the words around a number inflect it: ICU has the forms, and this says which is right.

Where the words do not tell, the figure stays, because a voice may know more.
"""

import re
from functools import lru_cache

import icu

MASCULINE = "cardinal-masculine"
_YEARS = range(1100, 2100)
_BY_GENDER = {"de": (1,), "fr": (1,), "es": (1,)}
"""Last digits of numbers whose form depends on the gender of a noun that is not known."""
_GERMAN_DATIVE = {"am", "vom", "zum", "beim", "dem", "den", "bis", "seit", "ab", "im"}
_RUSSIAN_YEARS = {"год": "", "года": "-genitive", "году": "-prepositional", "годом": "-instrumental"}
_RUSSIAN_GENITIVE = frozenset(
    [
        "до",
        "от",
        "с",
        "со",
        "из",
        "без",
        "для",
        "после",
        "около",
        "кроме",
        "более",
        "менее",
        "больше",
        "меньше",
        "свыше",
        "выше",
        "ниже",
        "старше",
        "течение",
    ]
)
_RUSSIAN_DATIVE = {"к", "ко"}
_RUSSIAN_ENDINGS = {"ам": "dative", "ям": "dative", "ми": "instrumental", "ах": "prepositional", "ях": "prepositional"}
"""Of plural nouns, by the case that they share with their number."""
_RUSSIAN_MEN = {"мужчина", "мужчины", "коллега", "коллеги"}
"""Nouns that end like feminine ones."""
_HEBREW_MASCULINE = frozenset(
    [
        "ימים",
        "יום",
        "שבועות",
        "חודשים",
        "אחוזים",
        "אחוז",
        "שקלים",
        "שקל",
        "דולרים",
        "דולר",
        "אירו",
        "עובדים",
        "אנשים",
        "מטרים",
        "קילומטרים",
        "עמודים",
        "סעיפים",
    ]
)
_HEBREW_FEMININE = frozenset(
    ["שעות", "דקות", "שניות", "שנים", "שנה", "פעמים", "לירות", "נקודות", "מדינות", "קומות", "מכונות"]
)
"""Nouns that are counted often; their endings tell the gender of few."""


def number_rule(number: int, language: str, before: str, after: str) -> str | None:
    """ICU's rule for a whole number between two words, "" for the ordinary one; None where the figure stays."""
    before, after = before.lower(), after.lower()
    if is_day(number, language, before, after):
        return _day_rule(language, before)
    match language:
        case "ru":
            return _russian_rule(number, before, after)
        case "he":
            return _hebrew_rule(number, after)
        case "en" | "de" if number in _YEARS:
            return "numbering-year"
    gendered = number % 100 not in (11, 12) and number % 10 in _BY_GENDER.get(language, ())
    return None if gendered else ""


def is_day(number: int, language: str, before: str, after: str) -> bool:
    """Whether the number is the day of a month that stands beside it."""
    months = _months(language)
    is_named = after.lower() in months or (language == "en" and before.lower() in months)
    return 1 <= number <= 31 and is_named


def russian_case(before: str, after: str = "") -> str:
    """The case of a number, "" for the nominative."""
    if (case := _RUSSIAN_ENDINGS.get(after[-2:])) and len(after) > 3:
        return case
    if before in _RUSSIAN_GENITIVE:
        return "genitive"
    return "dative" if before in _RUSSIAN_DATIVE else ""


def _day_rule(language: str, before: str) -> str:
    match language:
        case "ru":
            return "ordinal-neuter-genitive"
        case "he":
            return "cardinal-masculine-standalone"
        case "de":
            return german_day_rule(before)
    return "ordinal" if language == "en" else ""


def german_day_rule(before: str) -> str:
    """How a day is said behind a word: am ersten, der erste, erster Mai."""
    if before.lower() in _GERMAN_DATIVE:
        return "ordinal-n"
    return "ordinal" if before.lower() == "der" else "ordinal-r"


def _russian_rule(number: int, before: str, after: str) -> str | None:
    if number in _YEARS and after == "году" and before in _RUSSIAN_DATIVE:
        return "ordinal-masculine-dative"
    if number in _YEARS and after in _RUSSIAN_YEARS:
        return f"ordinal-masculine{_RUSSIAN_YEARS[after]}"
    if number in _YEARS and before in _months("ru"):
        return "ordinal-masculine-genitive"
    case = russian_case(before, after)
    gender = "masculine"
    if number % 10 in (1, 2) and number % 100 not in (11, 12) and after:
        found = _russian_gender(number % 10, case, after)
        if found is None:
            return None
        gender = found
    return f"cardinal-{gender}-{case}" if case else f"cardinal-{gender}"


def _russian_gender(digit: int, case: str, after: str) -> str | None:
    """The gender of the noun behind a number that ends with 1 or 2, with its case where the noun shows it."""
    if after in _RUSSIAN_MEN or (case and digit == 2):
        return "masculine"  # двух, двум: of all genders
    last = after[-1]
    if digit == 2 or case == "genitive":  # the noun is in the genitive singular
        return {"и": "feminine", "ы": "feminine", "а": "masculine", "я": "masculine"}.get(last)
    if case:
        return None
    if last in "уюь":
        return {"у": "feminine-accusative", "ю": "feminine-accusative"}.get(last)
    return {"а": "feminine", "я": "feminine", "о": "neuter", "е": "neuter"}.get(last, "masculine")


def _hebrew_rule(number: int, after: str) -> str | None:
    is_gendered = number % 10 != 0 or number % 100 == 10
    if not is_gendered or not after or number in _YEARS:
        return "numbering"
    if number == 1:
        return None  # its noun stands before it
    if after in _HEBREW_MASCULINE:
        return MASCULINE
    return "cardinal-feminine" if after in _HEBREW_FEMININE else None


@lru_cache(maxsize=64)
def _months(language: str) -> frozenset[str]:
    names = {name.lower() for name in icu.DateFormatSymbols(icu.Locale(language)).getMonths()}
    return frozenset({f"ב{name}" for name in names} if language == "he" else names)


def neighbours(found: re.Match[str]) -> tuple[str, str]:
    """The words right before and behind a match, "" where there is none in the same clause."""
    before = re.search(r"(\w+)\s$", found.string[: found.start()])
    after = re.match(r"\s(\w+)", found.string[found.end() :])
    return (before[1] if before else "", after[1] if after else "")
