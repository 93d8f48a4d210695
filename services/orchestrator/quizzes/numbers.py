"""Numbers as people write them: `1,889`, `12,5`, `1 000`, `12.5 %`."""

import re

_NUMBER = re.compile(r"[-−]?\d+(?:[.,'’   ]\d+)*")
_GROUPED = re.compile(r"\d{1,3}(?:[.,'’   ]\d{3})+")
_SPACES = re.compile(r"['’   ]")


def numbers_in(text: str) -> list[float]:
    """The values of all numbers of a text, in order."""
    return [value for each in _NUMBER.findall(text) for value in values_of(each)[:1]]


def read_number(text: str) -> float | None:
    """The value of a text that is one number, with or without signs around it; None of any other."""
    stripped = text.strip().strip("$€£¥₽₹%° ")
    return values_of(stripped)[0] if _NUMBER.fullmatch(stripped) else None


def values_of(number: str) -> tuple[float, ...]:
    """What a number may mean, the likelier first: `1,234` is 1234, and 1.234 in half of the world."""
    sign, digits = (-1.0, number[1:]) if number[:1] in "-−" else (1.0, number)
    digits = _SPACES.sub("", digits) if _GROUPED.fullmatch(digits) or not re.search(r"[.,]", digits) else digits
    digits = _SPACES.sub("", digits)
    marks = [mark for mark in digits if mark in ".,"]
    if not marks:
        return (sign * float(digits),)
    last = max(digits.rfind("."), digits.rfind(","))
    decimal = float(re.sub(r"[.,]", "", digits[:last]) + "." + digits[last + 1 :])
    whole = float(re.sub(r"[.,]", "", digits))
    if len(set(marks)) == 2:
        return (sign * decimal,)
    if len(marks) > 1:
        return (sign * whole,)
    is_group = len(digits) - last - 1 == 3 and digits[0] != "0"
    if not is_group:
        return (sign * decimal,)
    return (sign * whole, sign * decimal) if marks[0] == "," else (sign * decimal, sign * whole)
