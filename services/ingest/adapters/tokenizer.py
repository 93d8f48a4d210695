"""The embedder's own tokenizer, through the library `tokenizers`. Only the parsing child loads it."""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer

from services.ingest.reading.chunks.tokens import MAX_CHARS_PER_TOKEN

_BATCH_CHARS = 200_000


class ModelTokenizer:
    """The embedder's own tokenizer (Hugging Face `tokenizers` JSON)."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.special_tokens = int(self._tokenizer.num_special_tokens_to_add(False))
        # Both cut at white space before anything else and let no token reach across it; SentencePiece does not.
        self.additive = isinstance(self._tokenizer.pre_tokenizer, BertPreTokenizer) and isinstance(
            self._tokenizer.model, WordPiece
        )

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
        return [
            max(len(e), -(-len(text.strip()) // MAX_CHARS_PER_TOKEN)) for e, text in zip(encodings, batch, strict=True)
        ]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).offsets)
