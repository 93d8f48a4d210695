"""The embedder's own tokenizer, through the library that it is written for. Only the parsing child loads it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from sentencepiece import SentencePieceProcessor
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer

from services.ingest.reading.chunks.tokens import MAX_CHARS_PER_TOKEN, SENTENCEPIECE_SUFFIX, TokenCounter

_BATCH_CHARS = 200_000
_CONTINUES_MASK, _CONTINUES = 0xC0, 0x80
"""Bits by which UTF-8 marks the second and later bytes of a character."""
_SPACE = "\u2581"
"""Stands for a space in the pieces of SentencePiece."""


def open_tokenizer(path: Path) -> TokenCounter:
    """By the name of the file: a SentencePiece model, or Hugging Face `tokenizers` JSON."""
    return SentencePieceTokenizer(path) if path.suffix == SENTENCEPIECE_SUFFIX else ModelTokenizer(path)


class ModelTokenizer:
    """Hugging Face `tokenizers` JSON."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.special_tokens = int(self._tokenizer.num_special_tokens_to_add(False))
        # Both cut at white space before anything else and let no token reach across it; not every pre-tokenizer does.
        self.additive = isinstance(self._tokenizer.pre_tokenizer, BertPreTokenizer) and isinstance(
            self._tokenizer.model, WordPiece
        )

    def counts(self, texts: Sequence[str]) -> list[int]:
        return _in_batches(texts, self._lengths)

    def _lengths(self, batch: list[str]) -> list[int]:
        return [len(encoding) for encoding in self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).offsets)


class SentencePieceTokenizer:
    """A serialized SentencePiece ModelProto. The beginning and the end of a text are its special tokens."""

    special_tokens = 2

    def __init__(self, path: Path) -> None:
        self._processor = SentencePieceProcessor(model_file=str(path))
        pieces = self._processor.id_to_piece(list(range(self._processor.get_piece_size())))
        # A piece with a space inside would reach across white space.
        self.additive = not any(_SPACE in piece[1:] for piece in pieces)

    def counts(self, texts: Sequence[str]) -> list[int]:
        return _in_batches(texts, self._lengths)

    def _lengths(self, batch: list[str]) -> list[int]:
        return [len(ids) for ids in self._processor.encode(batch, num_threads=1)]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        pieces = self._processor.encode(text, return_type="proto").pieces
        begins = (np.frombuffer(text.encode(), np.uint8) & _CONTINUES_MASK) != _CONTINUES
        # The library counts bytes of UTF-8: how many characters begin before each, and before the end.
        characters = np.concatenate([[0], np.cumsum(begins)]).tolist()
        return [(characters[piece.begin], characters[piece.end]) for piece in pieces]


def _in_batches(texts: Sequence[str], lengths: Callable[[list[str]], list[int]]) -> list[int]:
    """Tokens of each text, and no fewer than its letters allow."""
    result: list[int] = []
    batch: list[str] = []
    size = 0
    for position, text in enumerate(texts, start=1):
        batch.append(text)
        size += len(text)
        if size >= _BATCH_CHARS or position == len(texts):
            least = [-(-len(each.strip()) // MAX_CHARS_PER_TOKEN) for each in batch]
            result += map(max, lengths(batch), least)
            batch, size = [], 0
    return result
