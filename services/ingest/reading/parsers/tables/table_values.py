"""What is in the cells of tables: values, the years that stand above them, and signs that were set in cells of their own."""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

_SIGN = r"(?:[A-Z]{1,3})?[$€£¥₹₽₪₩₺]"
_CURRENCY = re.compile(rf"^[(\[]?{_SIGN}$")
_CLOSING = re.compile(r"^(?:[)\]]\s?%?|%\s?[)\]]?)$")
_VALUE = re.compile(
    rf"^[(\[]?\s?[-+−–]?\s?(?:{_SIGN}\s?)?[(\[]?[-+−–]?[\d\s.,'’]*\d\s?%?[)\]]?\s?%?(?:{_SIGN})?\s?[⁰¹²³⁴-⁹]*$"
    r"|^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}$"
)
_NUMBER = re.compile(r"\d[\d.,]*")
_DASH = re.compile(r"^[-—–−]$")
_PERIOD = re.compile(r"^(?:FY\s?)?(?:19|20)\d\d\s?[AEF]?$|^\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}$")
_MONEY = rf"(?:{_SIGN}|EUR|USD|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN|CZK|HUF|RON|TRY|ILS|BRL|ZAR)"
_SCALE = r"(?:['’]?000s?|[Tt]housands?|[Mm]illions?|[Bb]illions?|[Mm]io\.?|[Mm]rd\.?|[Tt]sd\.?|mln\.?|mld\.?|tys\.?)"
_UNIT = re.compile(
    rf"^(?:in\s)?(?:{_MONEY}(?:\s?(?:{_SCALE}|k|m|mn|mm|bn|tn))?|{_SCALE}(?:\s(?:of\s)?{_MONEY})?|[Tkm]{_MONEY}|%)$"
)
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_POWER = re.compile(r"(?<![\d.,])10$")
_LONGEST_VALUE = 40
"""Characters. No number is longer, and the patterns need not look at what is."""


def is_value(cell: str) -> bool:
    """Whether a cell holds a number, an amount of money, a percentage or a date: `12,842`, `$ (561)`, `4.5 %`."""
    return len(cell) <= _LONGEST_VALUE and bool(_VALUE.match(cell))


def is_period(cell: str) -> bool:
    """Whether a value can be the name of a column: `2023`, `FY 2024`, `2025E`, `31.12.2023`."""
    return len(cell) <= _LONGEST_VALUE and bool(_PERIOD.match(cell))


def is_unit(cell: str) -> bool:
    """Whether a cell says what the numbers below it are counted in: `£m`, `$'000`, `EUR million`, `%`."""
    return len(cell) <= _LONGEST_VALUE and bool(_UNIT.match(cell.strip("()[] ")))


def column_name(parts: Iterable[str]) -> str:
    """The name of a column from what stands above it in several header rows, a unit in brackets: `2023 / Sales (£m)`."""
    named = ""
    for part in dict.fromkeys(parts):
        named = part if not named else f"{named} ({part.strip('()[] ')})" if is_unit(part) else f"{named} / {part}"
    return named


def can_name_columns(row: Sequence[str], below: Sequence[str] = ()) -> bool:
    """Whether a row can be a header: no value in it but years and dates, and those above something else; and nothing with a number
    in it above the like with another number, as `12 kg` stands above `7 kg`."""
    if any(is_value(cell) and not is_period(cell) for cell in row) or any(map(_DASH.match, row)):
        return False
    if any(_are_alike(cell, under) for cell, under in zip(row, below, strict=False)):
        return False
    periods = [column for column, cell in enumerate(row) if is_period(cell)]
    under = [below[column] for column in periods if column < len(below) and below[column]]
    return not periods or not under or not all(map(is_period, under))


def _are_alike(cell: str, under: str) -> bool:
    """Whether two cells differ in their numbers only."""
    if cell == under or max(len(cell), len(under)) > _LONGEST_VALUE or is_period(cell):
        return False
    shape = _NUMBER.sub("#", cell)
    return shape != cell and shape == _NUMBER.sub("#", under)


def is_sign(cell: str) -> bool:
    """Whether a cell holds no more than a part of the number beside it: `$`, `)`, `%`."""
    return len(cell) <= _LONGEST_VALUE and bool(_CURRENCY.match(cell) or _CLOSING.match(cell))


def with_joined_signs(rows: Sequence[Mapping[int, str]]) -> list[dict[int, str]]:
    """A table whose currency signs, closing brackets and signs of percent stand in columns of their own, as statements of accounts
    are set, with those at their numbers: `$` | `12,842` becomes `$12,842`, and what stands above either column stands above both.
    A mark of a footnote is no sign: it keeps its cell. Rows hold texts by column, empty ones left out."""
    joined = [dict(sorted(row.items())) for row in rows]
    before, behind = (_columns_of(pattern, rows) for pattern in (_CURRENCY, _CLOSING))
    for row in joined:
        _join(row)
    for columns, step in ((before, 1), (behind, -1)):
        for column in columns:
            if not any(row.get(column) and row.get(column + step) for row in joined):
                for row in joined:
                    if column in row:
                        row[column + step] = row.pop(column)
    return [dict(sorted(row.items())) for row in joined]


def _columns_of(signs: "re.Pattern[str]", rows: Sequence[Mapping[int, str]]) -> list[int]:
    """Columns with such signs, and without a number."""
    cells = [(column, cell) for row in rows for column, cell in row.items() if len(cell) <= _LONGEST_VALUE]
    found = {column for column, cell in cells if signs.match(cell)}
    return sorted(found - {column for column, cell in cells if is_value(cell) and not is_period(cell)})


def _join(row: dict[int, str]) -> None:
    """Joins the signs of one row to the numbers beside them."""
    columns = list(row)
    for column, following in itertools.pairwise(columns):
        if is_sign(row[column]) and _CURRENCY.match(row[column]) and _takes_signs(row[following]):
            row[following] = row.pop(column) + row[following]
    columns = list(row)
    for column, following in itertools.pairwise(columns):
        if is_sign(row[following]) and _CLOSING.match(row[following]) and row[column][-1:].isdigit():
            row[column] += row[following]
            row[following] = ""
    for column in [column for column, cell in row.items() if not cell]:
        del row[column]


def _takes_signs(cell: str) -> bool:
    return is_value(cell) or bool(_DASH.match(cell))


def with_raised(before: str, raised: str) -> str:
    """A text with what stands raised behind it. Behind a number, digits stay raised and the mark of a footnote keeps its distance:
    `561` and `2` are not 5612. A power of ten is one number: `10⁶`."""
    if not before[-1:].isdigit():
        return before + raised
    if _POWER.search(before) and raised.lstrip("-−").isdigit():
        return before + raised.translate(_RAISED).replace("-", "⁻").replace("−", "⁻")
    return f"{before} {raised if raised.startswith(('(', '[')) else raised.translate(_RAISED)}"


def with_lowered(before: str, lowered: str) -> str:
    """A text with what stands lowered behind it: behind a number, digits stay lowered, as the base of a number does."""
    if not before[-1:].isdigit() or not lowered[:1].isdigit():
        return before + lowered
    return before + lowered.translate(_LOWERED)


def with_shifted(parts: Iterable[tuple[str, int]]) -> str:
    """The text of its parts, each with whether it stands raised (above 0), lowered (below 0) or on the line."""
    text = ""
    for shift, together in itertools.groupby(parts, key=lambda part: (part[1] > 0) - (part[1] < 0)):
        piece = "".join(part for part, _ in together)
        if shift and piece.strip() and any(map(str.isdigit, piece)):
            text = (with_raised if shift > 0 else with_lowered)(text, piece.strip()) + (
                " " if piece[-1:].isspace() else ""
            )
        else:
            text += piece
    return text
