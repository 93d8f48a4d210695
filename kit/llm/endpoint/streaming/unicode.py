"""Text as endpoints send it: a character outside the basic plane may come as two halves in two pieces (\\ud83d, \\ude00), or as
one half alone, which no file, message or log could hold."""

from collections import defaultdict

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def well_formed(text: str) -> str:
    """The text with halves joined, and each that stands alone replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


class SurrogateJoiner:
    """Makes the pieces of several streams well-formed; holds back a first half until its second has come."""

    def __init__(self) -> None:
        self._held: defaultdict[object, str] = defaultdict(str)

    def feed(self, stream: object, piece: str) -> str:
        text = self._held.pop(stream, "") + piece
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._held[stream], text = text[-1], text[:-1]
        return well_formed(text)

    def finish(self, stream: object) -> str:
        """A replacement for a half that was held back to the end."""
        return _REPLACEMENT if self._held.pop(stream, "") else ""
