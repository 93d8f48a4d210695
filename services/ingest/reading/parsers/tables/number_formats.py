"""Numbers of spreadsheets and charts, as their formats show them (ECMA-376, 18.8.31): with their currency or unit, rounded, as a
percentage, in thousands."""

import re
from dataclasses import dataclass
from functools import lru_cache

_MAX_DECIMALS = 30  # as many as the program shows
_MAX_DIGITS = 30
_MAX_PLAIN_NUMBER = 1e300
_MAX_FORMAT_CHARS = 500
_MAX_LITERAL_CHARS = 40
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)(?:"|$)|\[(?P<bracket>[^\]]*)(?:\]|$)|\\(?P<escaped>.)|(?P<space>_.)|(?P<fill>\*.)'
    r"|(?P<mask>[0#?][0#?,]*(?:\.[0#?]*)?|\.[0#?]+)|(?P<general>general)|(?P<bare>.)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class _Shape:
    prefix: str = ""
    suffix: str = ""
    min_digits: int = 1
    min_decimals: int = 0
    max_decimals: int | None = None
    """None for as many as there are."""
    factor: float = 1
    """A percentage is shown a hundred times as large, thousands a thousandth."""


def formatted_number(value: float, number_format: str) -> str:
    """A number as its format shows it, but for two things: thousands are not separated, so that it is found as it is typed, and
    what is below zero has a minus."""
    if abs(value) >= _MAX_PLAIN_NUMBER:
        return str(value)
    shape = _shape(number_format)
    shown = _digits(abs(value) if shape.factor == 1 else abs(value) * shape.factor, shape)
    minus = "-" if value < 0 and shown.strip("0.") else ""
    return f"{minus}{shape.prefix}{shown}{shape.suffix}"


def _digits(value: float, shape: _Shape) -> str:
    if shape.max_decimals is None:
        return f"{value:.0f}" if isinstance(value, int) else f"{value:.15g}"
    whole, _, decimals = f"{value:.{shape.max_decimals}f}".partition(".")
    decimals = decimals[: shape.min_decimals] + decimals[shape.min_decimals :].rstrip("0")
    return whole.rjust(shape.min_digits, "0") + (f".{decimals}" if decimals else "")


@lru_cache(maxsize=1024)
def _shape(number_format: str) -> _Shape:
    """What a format says of numbers above zero. It may be as long as a book, and each cell has one."""
    masks: list[str] = []
    literals = ["", ""]
    commas = 0
    for token in _TOKEN.finditer(number_format[:_MAX_FORMAT_CHARS]):
        text = token[0]
        match token.lastgroup:
            case "bare" if text == ";":
                break
            case "mask" | "general":
                masks.append(text)
            case "bare" if text == "," and masks:
                commas += 1
            case kind:
                literals[bool(masks)] += _literal(kind, token)
    percent = 100.0 if "%" in "".join(literals) else 1.0
    if len(masks) != 1 or re.search(r"^/|^[eE][+-]?$", literals[1]):  # a fraction, a power of ten, digits in groups
        return _Shape(suffix="%" if percent > 1 else "", factor=percent)
    prefix, suffix = (" ".join(f"|{literal}|".split())[1:-1][:_MAX_LITERAL_CHARS] for literal in literals)
    if masks[0].lower() == "general":
        return _Shape(prefix.lstrip(), suffix.rstrip(), factor=percent)
    whole, _, decimals = masks[0].partition(".")
    commas += len(whole) - len(whole.rstrip(","))
    return _Shape(
        prefix.lstrip(),
        suffix.rstrip(),
        min(max(1, whole.count("0")), _MAX_DIGITS),
        min(decimals.rfind("0") + 1, _MAX_DECIMALS),
        min(len(decimals), _MAX_DECIMALS),
        percent / 1000**commas,
    )


def _literal(kind: str | None, token: "re.Match[str]") -> str:
    """What stands beside the digits: a currency, a unit. Brackets around numbers below zero do not."""
    match kind:
        case "quoted" | "escaped":
            return str(token[kind]).strip("()+-")
        case "bracket":
            return token["bracket"][1:].partition("-")[0] if token["bracket"].startswith("$") else ""
        case "space":
            return " "
        case "bare":
            return "" if token[0] in "()+-@," else token[0]
        case _:
            return ""
