"""What stands in front of a chunk's text when it is embedded: the document's title and the headings above."""

from collections.abc import Sequence

from services.ingest.reading.chunks.pieces import Piece
from services.ingest.reading.chunks.tokens import TokenCounter

_MAX_TITLE_CHARS = 160
_MAX_PATH_CHARS = 240
_MAX_PREFIX_SHARE = 0.33


class Prefixes:
    """Prefixes of one document's chunks of `size` tokens, and what they leave to the text."""

    def __init__(self, title: str, tokens: TokenCounter, size: int) -> None:
        self._title = title
        self._tokens = tokens
        self._size = size
        self._costs: dict[str, int] = {}

    def prefix(self, path: Sequence[str]) -> str:
        """Title and heading path, cut so that they leave two thirds of the chunk to the text."""
        title = self._title[:_MAX_TITLE_CHARS]
        names = [name for name in path if name != title]
        for lines in ([title, " > ".join(names)[-_MAX_PATH_CHARS:]], [title, (names or [""])[-1][:80]], [title[:80]]):
            prefix = "\n".join(line for line in lines if line) + "\n\n"
            if self.cost(prefix) <= _MAX_PREFIX_SHARE * self._size:
                return prefix
        return ""

    def cost(self, prefix: str) -> int:
        """Tokens of a prefix."""
        if prefix not in self._costs:
            self._costs[prefix] = self._tokens.counts([prefix])[0]
        return self._costs[prefix]

    def budget(self, first: Piece) -> int:
        """Tokens that a chunk which begins with this piece has for its text: the headings in it need not be said again."""
        above = [name for name, at in first.section.path if at < first.start]
        return max(1, self._size - self.cost(self.prefix(above)))
