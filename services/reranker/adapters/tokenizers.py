"""The tokenizer of Hugging Face's `tokenizers`."""

from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer

from services.reranker.models import Float32, TokenIds, TokenizerDefinition, TokenizerForm


class HuggingFaceTokenizer:
    """A `tokenizer.json`. The file's own truncation and padding (all-MiniLM-L6-v2's pads every text to 128) are removed
    from the published definition and replaced by the window here."""

    def __init__(self, definition: bytes, window_tokens: int) -> None:
        self._tokenizer = Tokenizer.from_str(definition.decode())
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._definition = TokenizerDefinition(TokenizerForm.HUGGING_FACE, self._tokenizer.to_str().encode())
        self._tokenizer.enable_truncation(window_tokens)
        self._window_tokens = window_tokens

    @property
    def window_tokens(self) -> int:
        return self._window_tokens

    @property
    def definition(self) -> TokenizerDefinition:
        return self._definition

    def tokenize(self, texts: Sequence[str]) -> list[TokenIds]:
        encodings = self._tokenizer.encode_batch_fast(list(texts))
        return [np.array(encoding.ids, dtype=np.int64) for encoding in encodings]

    def rarities(self, ids: TokenIds) -> Float32:
        return np.ones(len(ids), np.float32)


class HuggingFacePairTokenizer:
    """A `tokenizer.json` of a cross-encoder: its post-processor puts the special tokens around both texts."""

    def __init__(self, definition: str, window_tokens: int) -> None:
        self._tokenizer = Tokenizer.from_str(definition)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(window_tokens, strategy="longest_first")
        self._window_tokens = window_tokens

    @property
    def window_tokens(self) -> int:
        return self._window_tokens

    def tokenize_pairs(self, query_text: str, passages: Sequence[str]) -> list[TokenIds]:
        encodings = self._tokenizer.encode_batch_fast([(query_text, passage) for passage in passages])
        return [np.array(encoding.ids, dtype=np.int64) for encoding in encodings]
