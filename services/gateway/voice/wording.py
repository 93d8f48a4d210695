"""Text as it is said aloud: no Markdown, no citation marks, no addresses, and figures, dates and times in words.

ICU spells numbers out in the language of the text. Where the gender of a noun decides how a number is said the figure stays: a
voice knows more about that than we do.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import urlsplit

import icu
from markdown_it import MarkdownIt
from markdown_it.token import Token

_MARK = re.compile(r"\s?\[\d{1,4}\]")
_ADDRESS = re.compile(r"https?://\S+?(?=[.,;:!?)\]]*(?:\s|$))")
_CELL = re.compile(r"\s*(?:\||\t)\s*")
_DATE = re.compile(r"(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})")
_DOTTED_DATE = re.compile(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})")
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(\s(?:Uhr|o'clock))?")
_ORDINAL = re.compile(r"(\d{1,4})(?:st|nd|rd|th)")
_NUMBER = re.compile(
    r"([€$£]\s?)?(\d{1,3}(?:[.,\u00a0\u202f ]\d{3})+(?:[.,]\d{1,6})?|\d{1,9}(?:[.,]\d{1,6})?)(\s?[%€£$])?"
)
_FIGURES = re.compile(
    r"(?<![\w.,:/+–-])(?<!\d\s)(?:"
    + "|".join(re.sub(r"\?P<\w+>", "", each.pattern) for each in (_DATE, _DOTTED_DATE, _TIME, _ORDINAL, _NUMBER))
    + r")(?![\w:/–-]|[.,\s]\d)"
)
"""Not within codes, addresses, ranges and telephone numbers."""
_CURRENCIES = {"€": "EUR", "$": "USD", "£": "GBP"}
_PERCENT = {"en": "percent", "de": "Prozent", "ru": "%", "he": "אחוז", "fr": "pour cent", "es": "por ciento"}
_FULL_HOUR = {"en": "o'clock", "de": "Uhr"}
_YEARS = range(1100, 2100)
_BY_GENDER = {"de": (1,), "ru": (1, 2), "he": tuple(range(1, 11)), "fr": (1,), "es": (1,)}
"""The last figures of numbers that a noun inflects, by language."""
_markdown = MarkdownIt("commonmark")


def spoken(text: str, language: str) -> str:
    """The words of `text` for a voice; `language` is an ISO 639-1 code. Empty where nothing of it is said."""
    said = _ADDRESS.sub(_host, _plain(_MARK.sub("", text)))
    said = _CELL.sub(", ", said)
    return " ".join(_FIGURES.sub(lambda found: _said(found[0], language), said).split())


def _said(figures: str, language: str) -> str:
    if found := _DATE.fullmatch(figures) or _DOTTED_DATE.fullmatch(figures):
        return _date(found, language)
    if found := _TIME.fullmatch(figures):
        return _time(found, language)
    if found := _ORDINAL.fullmatch(figures):
        return _spelt(int(found[1]), language, "ordinal") if language == "en" else figures
    found = _NUMBER.fullmatch(figures)
    return _number(found, language) if found else figures


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


def _date(found: re.Match[str], language: str) -> str:
    year, month, day = (int(found[name]) for name in ("year", "month", "day"))
    try:
        moment = datetime(year, month, day, tzinfo=UTC).timestamp()
    except ValueError:
        return found[0]
    locale = icu.Locale(language)
    shape = icu.DateFormat.createDateInstance(icu.DateFormat.LONG, locale)
    shape.setTimeZone(icu.TimeZone.getGMT())
    written = re.sub(r"\sг\.", " года", shape.format(moment))
    if language in ("en", "de"):
        kind = "ordinal" if language == "en" else "ordinal-r"
        written = re.sub(rf"\b{day}\b\.?", _spelt(day, language, kind), written, count=1)
        written = written.replace(str(year), _spelt(year, language, "numbering-year"))
    return written


def _time(found: re.Match[str], language: str) -> str:
    if language not in _FULL_HOUR:
        return found[0]
    hour, minute = int(found[1]), int(found[2])
    words = [_spelt(hour, language)]
    if language == "de" or not minute:
        words.append(_FULL_HOUR[language])
    if minute:
        words.append(_spelt(minute, language) if minute > 9 or language == "de" else f"oh {_spelt(minute, language)}")
    return " ".join(words)


def _number(found: re.Match[str], language: str) -> str:
    number = _value(found[2], language)
    if number is None:
        return found[0]
    sign = (found[1] or found[3] or "").strip()
    if sign in _CURRENCIES:
        return _amount(number, _CURRENCIES[sign], language)
    if isinstance(number, int) and number % 100 not in (11, 12) and number % 10 in _BY_GENDER.get(language, ()):
        return found[0]
    is_year = found[2].isdigit() and number in _YEARS and language == "en"
    said = _spelt(number, language, "numbering-year" if is_year else "")
    return f"{said} {_PERCENT.get(language, '%')}" if sign == "%" else f"{said}{found[3] or ''}"


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


def _amount(number: float, currency: str, language: str) -> str:
    """An amount of money: the number in words and the currency's name."""
    formatter = icu.NumberFormatter.withLocale(icu.Locale(language)).unit(icu.CurrencyUnit(currency))
    digits = 0 if isinstance(number, int) else 2
    written: str = (
        formatter.unitWidth(icu.UNumberUnitWidth.FULL_NAME).precision(icu.Precision.fixedFraction(digits))
    ).formatDouble(float(number))
    return re.sub(r"\d[\d.,\u00a0\u202f]*(?<=\d)", lambda _: _spelt(number, language), written, count=1)


def _spelt(number: float, language: str, kind: str = "") -> str:
    speller = _speller(language)
    said: str = speller.format(number, f"%spellout-{kind}") if kind else speller.format(number)
    return said.replace("\u00ad", "")


@lru_cache(maxsize=64)
def _speller(language: str) -> icu.RuleBasedNumberFormat:
    return icu.RuleBasedNumberFormat(icu.URBNFRuleSetTag.SPELLOUT, icu.Locale(language))
