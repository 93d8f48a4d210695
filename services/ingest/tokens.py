"""Counting what the embedder will see, with its own tokenizer. Counts are for cutting: a chunk that is counted too small loses its
end at the model."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

_BATCH_CHARS = 200_000
# A token stands for at most this many characters here. WordPiece makes one [UNK] of a word of 10 000 letters (base64, DNA); it
# would make a chunk of megabytes.
MAX_CHARS_PER_TOKEN = 16


class TokenCounter(Protocol):
    """Counts and places tokens as the embedder does, special tokens left out."""

    special_tokens: int
    """Added to every text by the embedder."""

    def counts(self, texts: Sequence[str]) -> list[int]: ...

    def offsets(self, text: str) -> list[tuple[int, int]]: ...


class ModelTokenizer:
    """The embedder's own tokenizer (Hugging Face `tokenizers` JSON)."""

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer  # noqa: PLC0415 - a native library: only in the child

        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.special_tokens = int(self._tokenizer.num_special_tokens_to_add(False))

    def counts(self, texts: Sequence[str]) -> list[int]:
        result: list[int] = []
        batch: list[str] = []
        size = 0
        for text in texts:
            batch.append(text)
            size += len(text)
            if size >= _BATCH_CHARS:
                result += self._count(batch)
                batch, size = [], 0
        return result + self._count(batch)

    def _count(self, batch: list[str]) -> list[int]:
        encodings = self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)
        return [max(len(e), -(-len(text) // MAX_CHARS_PER_TOKEN)) for e, text in zip(encodings, batch, strict=True)]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).offsets)


class EstimatedTokens:
    """Stands in where the embedding provider publishes no tokenizer: pieces of up to four letters, each mark one token. Counts
    more than real tokenizers do in most texts, so that chunks stay inside the window."""

    special_tokens = 2
    _PIECE = re.compile(r"[^\W_\u2e80-\uffff]{1,4}|[^\s]")

    def counts(self, texts: Sequence[str]) -> list[int]:
        return [sum(1 for _ in self._PIECE.finditer(text)) for text in texts]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return [found.span() for found in self._PIECE.finditer(text)]
