"""Numbers of spreadsheets and charts, as their formats show them."""

import re
from functools import lru_cache

_MAX_DECIMALS = 30  # as many as the program shows
_MAX_PLAIN_NUMBER = 1e300
_DECIMALS = re.compile(r"[0#]\.(0+)")
_QUOTED = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')


def formatted_number(value: float, number_format: str) -> str:
    """A number with the decimals of its format; thousands are not separated, so that it is found as it is typed."""
    decimals, percent = _shape(number_format)
    if abs(value) >= _MAX_PLAIN_NUMBER:
        return str(value)
    if percent:
        value *= 100
    if decimals is not None:
        return f"{value:.{decimals}f}{percent}"
    return f"{value:.0f}{percent}" if isinstance(value, int) else f"{value:.15g}{percent}"


@lru_cache(maxsize=1024)
def _shape(number_format: str) -> tuple[int | None, str]:
    """How many decimals a format shows, None for as many as there are, and its sign of percent if it has one. A format may be as
    long as a book, and each cell has one."""
    shape = _QUOTED.sub("", number_format).partition(";")[0]
    decimals = _DECIMALS.search(shape)
    percent = "%" if "%" in shape else ""
    if decimals and "E" not in shape.upper():
        return min(len(decimals[1]), _MAX_DECIMALS), percent
    return (0 if percent and not decimals else None), percent
