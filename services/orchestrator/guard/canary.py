"""A mark in the system prompt that must never be written: a text in which it stands, in whatever form, gives the instructions
away."""

import base64
import secrets
from dataclasses import dataclass
from functools import cache

from services.orchestrator.guard.folding import fold

_LEAST, _HELD = 8, 3
"""Characters of the mark that are a leak, and from how many on a text is held back until it is known how it goes on."""


def new_canary() -> str:
    """A mark that stands in no other text."""
    return f"qz{secrets.token_hex(8)}zq"


@cache
def _forms(canary: str) -> str:
    """The mark as it may be written: as it is, backwards, in hexadecimal digits, in base64 at three alignments, by ROT13."""
    encoded = [
        base64.b64encode(b"\0" * shift + canary.encode()).decode()[4 if shift else 0 : -4].lower() for shift in range(3)
    ]
    rot13 = "".join(chr((ord(each) - 97 + 13) % 26 + 97) if each.isalpha() else each for each in canary)
    return "\n".join([canary, canary[::-1], canary.encode().hex(), *encoded, rot13])


@dataclass(frozen=True)
class Checked:
    """What of a text may go on; a leak ends it."""

    text: str
    is_leak: bool = False


class CanaryCheck:
    """Lets a text pass in pieces, wherever it is cut, and holds back what may become the mark. What stands between the characters
    of the mark, and their case, make no difference."""

    def __init__(self, canary: str) -> None:
        self._forms = _forms(canary)
        self._held = ""
        self._matched: list[tuple[str, int]] = []
        """The characters of the end of the text that stand in the mark, and where each stands in what is held."""

    def feed(self, piece: str) -> Checked:
        """What can be shown now."""
        start = len(self._held)
        self._held += piece
        for place, character in enumerate(piece, start=start):
            for plain in fold(character):
                if plain.isalnum() and self._leaks(plain, place):
                    shown = self._held[: self._matched[0][1]]
                    self._held, self._matched = "", []
                    return Checked(shown, is_leak=True)
        keep = self._matched[0][1] if len(self._matched) >= _HELD else len(self._held)
        shown, self._held = self._held[:keep], self._held[keep:]
        self._matched = [(each, place - keep) for each, place in self._matched]
        return Checked(shown)

    def finish(self) -> str:
        """What was still held back: it has not become the mark."""
        held, self._held, self._matched = self._held, "", []
        return held

    def _leaks(self, plain: str, place: int) -> bool:
        self._matched.append((plain, place))
        while self._matched and "".join(each for each, _ in self._matched) not in self._forms:
            self._matched.pop(0)
        return len(self._matched) >= _LEAST
