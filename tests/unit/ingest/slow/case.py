"""What a slow file is."""

from collections.abc import Callable
from dataclasses import dataclass

SENTENCE = "The ferry to Norderney leaves at seven and returns at nine in the evening"


@dataclass(frozen=True)
class SlowFile:
    """A kind of file that is made to be slow. `make` has `n` of what it consists of; `usual` are read in some hundredths of a
    second."""

    name: str
    usual: int
    make: Callable[[int], bytes]


def text_of(body: Callable[[int], str]) -> Callable[[int], bytes]:
    """Files of this text."""
    return lambda n: body(n).encode()
