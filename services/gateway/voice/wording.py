"""Text as it is said aloud: no Markdown, no citation marks, no addresses, and figures, dates and times in words.

ICU spells numbers out in the language of the text, in the form that the words around them ask for.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import urlsplit

import icu
from markdown_it import MarkdownIt
from markdown_it.token import Token

from services.gateway.voice.inflection import MASCULINE, german_day_rule, neighbours, number_rule, russian_case

_MARK = re.compile(r"\s?\[\d{1,4}\]")
_ADDRESS = re.compile(r"https?://\S+?(?=[.,;:!?)\]]*(?:\s|$))")
_BLANK = re.compile(r"[ ]+(?=[.,;!?…](?:\s|$))")
"""Before a full stop: where a mark stood that was taken out."""
_CELL = re.compile(r"\s*(?:\||\t)\s*")
_DATE = re.compile(r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})")
_DOTTED_DATE = re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})")
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(\s(?:Uhr|o'clock))?")
_ORDINAL = re.compile(r"(\d{1,4})(?:st|nd|rd|th)")
_GERMAN_DAY = re.compile(
    r"(\d{1,2})\.(?=\s(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)\b)"
)
_NUMBER = re.compile(
    r"([€$£₽₪]\s?)?(\d{1,3}(?:[.,\u00a0\u202f ]\d{3})+(?:[.,]\d{1,6})?|\d{1,9}(?:[.,]\d{1,6})?)(\s?[%€£$₽₪])?"
)
_FIGURES = re.compile(
    r"(?<![\w.,:/+–-])(?<!\d\s)(?:"
    + "|".join(
        re.sub(r"\?P<\w+>", "", each.pattern) for each in (_DATE, _DOTTED_DATE, _TIME, _ORDINAL, _GERMAN_DAY, _NUMBER)
    )
    + r")(?![\w:/–-]|[.,\s]\d)"
)
"""Not within codes, addresses, ranges and telephone numbers."""
_CURRENCIES = {"€": "EUR", "$": "USD", "£": "GBP", "₽": "RUB", "₪": "ILS"}
_PERCENT = icu.MeasureUnit.createPercent()
_WRITTEN_PERCENT = {"fr": "pour cent", "es": "por ciento"}
"""Where ICU has the sign alone."""
_HOURS = icu.MeasureUnit.createHour()
_FULL_HOUR = {"en": "o'clock", "de": "Uhr"}
_HOUR = {"en": "", "de": MASCULINE, "ru": MASCULINE, "he": "numbering"}
"""The rule of an hour in the languages whose times are said in words."""
_SPOKEN_ZERO = {"en": "oh", "ru": "ноль", "he": "אפס"}
_DAY_AND_YEAR = {
    "en": ("ordinal", "numbering-year"),
    "de": ("ordinal-r", "numbering-year"),
    "ru": ("ordinal-neuter-genitive", "ordinal-masculine-genitive"),
    "he": ("cardinal-masculine-standalone", "numbering"),
}
"""The rules of a date."""
_FEMININE_MONEY = {("he", "GBP")}
_markdown = MarkdownIt("commonmark")


def spoken(text: str, language: str) -> str:
    """The words of `text` for a voice; `language` is an ISO 639-1 code. Empty where nothing of it is said."""
    said = _ADDRESS.sub(_host, _plain(_MARK.sub("", text)))
    said = _BLANK.sub("", _CELL.sub(", ", said))
    return " ".join(_FIGURES.sub(lambda found: _said(found, language), said).split())


def _said(place: re.Match[str], language: str) -> str:
    figures = place[0]
    before, after = neighbours(place)
    if found := _DATE.fullmatch(figures) or _DOTTED_DATE.fullmatch(figures):
        return _date(found, language, before, after)
    if found := _TIME.fullmatch(figures):
        return _time(found, language, before)
    if found := _ORDINAL.fullmatch(figures):
        return _spelt(int(found[1]), language, "ordinal") if language == "en" else figures
    if figures.endswith("."):
        return _spelt(int(figures[:-1]), language, german_day_rule(before)) if language == "de" else figures
    found = _NUMBER.fullmatch(figures)
    return _number(found, language, before, after) if found else figures


def document_title(name: str) -> str:
    """The name of a document for a voice: without its ending, with spaces between its words."""
    stem = re.sub(r"\.[A-Za-z0-9]{1,5}$", "", name.rsplit("/", 1)[-1])
    return " ".join(re.sub(r"[_-]+", " ", stem).split()) or name


def _plain(text: str) -> str:
    """The text without Markdown."""
    return " ".join(_words(token) for token in _markdown.parse(text) if token.type in ("inline", "fence", "code_block"))


def _words(token: Token) -> str:
    if token.children is None:
        return token.content
    kept = (each.content if each.type in ("text", "code_inline", "image") else " " for each in token.children)
    marks = {"strong_open", "strong_close", "em_open", "em_close", "link_open", "link_close", "s_open", "s_close"}
    return "".join("" if each.type in marks else word for each, word in zip(token.children, kept, strict=True))


def _host(found: re.Match[str]) -> str:
    return (urlsplit(found[0]).hostname or "").removeprefix("www.")


def _date(found: re.Match[str], language: str, before: str, after: str) -> str:
    year, month, day = (int(found[name]) for name in ("year", "month", "day"))
    try:
        moment = datetime(year, month, day, tzinfo=UTC).timestamp()
    except ValueError:
        return found[0]
    locale = icu.Locale(language)
    shape = icu.DateFormat.createDateInstance(icu.DateFormat.LONG, locale)
    shape.setTimeZone(icu.TimeZone.getGMT())
    written: str = shape.format(moment)
    if language not in _DAY_AND_YEAR:
        return written
    day_rule, year_rule = _DAY_AND_YEAR[language]
    written = re.sub(r"\sг\.", "" if after.startswith("г") else " года", written)
    said_day = _spelt(day, language, german_day_rule(before) if language == "de" else day_rule)
    written = re.sub(rf"\b{day}\b\.?", said_day, written, count=1)
    return written.replace(str(year), _spelt(year, language, year_rule))


def _time(found: re.Match[str], language: str, before: str) -> str:
    if language not in _HOUR:
        return found[0]
    hour, minute = int(found[1]), int(found[2])
    case = russian_case(before.lower()) if language == "ru" else ""
    rule = f"cardinal-masculine-{case}" if case else _HOUR[language]
    if not minute and case not in ("", "genitive"):
        return found[0]
    if not minute and language == "ru":
        return f"{_spelt(hour, language, rule)} {_unit(_HOURS, hour, language, case)}"
    words = [_spelt(hour, language, rule)]
    if language == "de" or (not minute and language == "en"):
        words.append(_FULL_HOUR[language])
    if minute:
        zero = _SPOKEN_ZERO.get(language, "") if minute < 10 else ""
        words.append(f"{zero} {_spelt(minute, language, rule if language == 'ru' else '')}".strip())
    return " ".join(words)


def _number(found: re.Match[str], language: str, before: str, after: str) -> str:
    number = _value(found[2], language)
    if number is None:
        return found[0]
    sign = (found[1] or found[3] or "").strip()
    if sign:
        unit = _PERCENT if sign == "%" else icu.CurrencyUnit(_CURRENCIES[sign])
        is_feminine = (language, _CURRENCIES.get(sign)) in _FEMININE_MONEY
        if sign == "%" and language in _WRITTEN_PERCENT:
            return f"{_spelt(number, language)} {_WRITTEN_PERCENT[language]}"
        if language == "ru" and russian_case(before.lower()) not in ("", "genitive"):
            return found[0]
        return _quantity(number, unit, language, before, "cardinal-feminine" if is_feminine else MASCULINE)
    if isinstance(number, float):
        return _spelt(number, language)
    rule = number_rule(number, language, before, after)
    return found[0] if rule is None else _spelt(number, language, rule)


def _value(written: str, language: str) -> int | float | None:
    """The number, read as the language writes it; None for what is rather a code."""
    symbols = _symbols(language)
    groups = [mark for mark in ".,\u00a0\u202f " if mark != symbols]
    plain = written
    for mark in groups:
        if mark in plain:
            if not re.fullmatch(r"\d{1,3}(?:[.,\u00a0\u202f ]\d{3})+(?:[.,]\d{1,6})?", written):
                return None  # "3.5" in a language that writes "3,5"
            plain = plain.replace(mark, "")
    if (len(plain) > 1 and plain[0] == "0" and plain.isdigit()) or not plain:
        return None
    plain = plain.replace(symbols, ".")
    return float(plain) if "." in plain else int(plain)


@lru_cache(maxsize=64)
def _symbols(language: str) -> str:
    """The decimal mark of the language."""
    mark: str = icu.DecimalFormatSymbols(icu.Locale(language)).getSymbol(
        icu.DecimalFormatSymbols.kDecimalSeparatorSymbol
    )
    return mark


def _quantity(number: float, unit: icu.MeasureUnit, language: str, before: str, rule: str) -> str:
    """A number in words with the name of its unit."""
    case = russian_case(before.lower()) if language == "ru" and isinstance(number, int) else ""
    is_inflected = isinstance(number, int) and rule.removeprefix("%") in _rules(language)
    said = _spelt(number, language, (f"{rule}-{case}" if case else rule) if is_inflected else "")
    name = _unit(unit, number, language, case)
    return f"{name} {said}" if language == "he" and number == 1 else f"{said} {name}"


def _unit(unit: icu.MeasureUnit, number: float, language: str, case: str = "") -> str:
    """The name of a unit as it stands behind a number."""
    if case:  # of one: as behind a fraction, where Russian has the genitive singular
        number = 1.5 if number % 10 == 1 and number % 100 != 11 else 5
    formatter = icu.NumberFormatter.withLocale(icu.Locale(language)).unit(unit)
    precision = icu.Precision.maxFraction(2)
    written: str = formatter.unitWidth(icu.UNumberUnitWidth.FULL_NAME).precision(precision).formatDouble(float(number))
    return re.sub(r"\d[\d.,\u00a0\u202f]*(?<=\d)", "", written, count=1).strip()


def _spelt(number: float, language: str, rule: str = "") -> str:
    """The number in words. Years are said without their first word where a language leaves it out."""
    speller = _speller(language)
    is_known = rule in _rules(language)
    said: str = speller.format(number, f"%spellout-{rule}") if is_known else speller.format(number)
    said = said.replace("\u00ad", "")
    return said.removeprefix("одна ") if rule.startswith("ordinal") and number >= 1000 else said


@lru_cache(maxsize=64)
def _rules(language: str) -> frozenset[str]:
    speller = _speller(language)
    names = (speller.getRuleSetName(number) for number in range(speller.getNumberOfRuleSetNames()))
    return frozenset(name.removeprefix("%spellout-") for name in names)


@lru_cache(maxsize=64)
def _speller(language: str) -> icu.RuleBasedNumberFormat:
    return icu.RuleBasedNumberFormat(icu.URBNFRuleSetTag.SPELLOUT, icu.Locale(language))
