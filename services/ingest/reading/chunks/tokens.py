"""Counting what the embedder will see, with its own tokenizer. Counts are for cutting: a chunk that is counted too small loses its
end at the model."""

import re
from collections.abc import Sequence
from typing import Protocol

# A token stands for at most this many characters here. WordPiece makes one [UNK] of a word of 10 000 letters (base64, DNA); it
# would make a chunk of megabytes.
MAX_CHARS_PER_TOKEN = 16

SENTENCEPIECE_SUFFIX = ".model"
"""Of a tokenizer's file that is a SentencePiece model; others are Hugging Face `tokenizers` JSON."""


class TokenCounter(Protocol):
    """Counts and places tokens as the embedder does, special tokens left out."""

    special_tokens: int
    """Added to every text by the embedder."""
    additive: bool
    """Whether a text that is cut at white space has as many tokens as its parts together: nothing need be counted twice."""

    def counts(self, texts: Sequence[str]) -> list[int]: ...

    def offsets(self, text: str) -> list[tuple[int, int]]: ...


class EstimatedTokens:
    """Stands in where the embedding provider publishes no tokenizer: pieces of up to four letters, each mark one token. Counts
    more than real tokenizers do in most texts, so that chunks stay inside the window."""

    special_tokens = 2
    additive = True
    _PIECE = re.compile(r"[^\W_\u2e80-\uffff]{1,4}|[^\s]")

    def counts(self, texts: Sequence[str]) -> list[int]:
        return [sum(1 for _ in self._PIECE.finditer(text)) for text in texts]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return [found.span() for found in self._PIECE.finditer(text)]
