"""Words and numbers as these checks compare them: by simpler means than the system's own, and none of its code."""

import re
from collections.abc import Iterator

_NUMBER = re.compile(r"[-−]?\d+(?:[.,'’   ]\d+)*")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")


def plain(text: str) -> str:
    """Letters and digits in lower case, one space apart."""
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))


def stands_in(words: str, text: str) -> bool:
    """Whether the words stand in the text, in this order and without others between them."""
    return f" {plain(words)} " in f" {plain(text)} "


def share_in(words: str, text: str) -> float:
    """Share of the words that stand in the text, in any order."""
    wanted, there = plain(words).split(), set(plain(text).split())
    return sum(word in there for word in wanted) / len(wanted) if wanted else 0.0


def sentences(text: str) -> Iterator[str]:
    """Sentences and lines of a text."""
    return (each for each in _SENTENCE.split(text) if each.strip())


def has_number(value: float, text: str) -> bool:
    """Whether a number of the text has this value, whatever its marks mean."""
    for written in _NUMBER.findall(text):
        digits = written.replace("−", "-")
        marks = {re.sub(r"[,'’   ]", "", digits), re.sub(r"[.'’   ]", "", digits).replace(",", ".")}
        if any(_value(each) == value for each in marks):
            return True
    return False


def _value(digits: str) -> float | None:
    try:
        return float(digits)
    except ValueError:
        return None
