"""What the core needs from a vendor: something that turns token ids into token vectors, and something that makes token ids."""

from collections.abc import Sequence
from typing import Protocol

from services.reranker.models import Float32, Int64, TokenIds


class Encoder(Protocol):
    """A transformer that yields one vector per token. Blocking: the batcher calls it from `streams` threads of its own."""

    @property
    def dimension(self) -> int:
        """Length of a token vector."""

    @property
    def runtime(self) -> str:
        """Runtime and device, for example "openvino/cpu"."""

    @property
    def streams(self) -> int:
        """Batches that it computes at once without one slowing down another."""

    def encode(self, input_ids: Int64, attention_mask: Int64) -> Float32:
        """int64 [texts, tokens] twice (mask: 1 for a token, 0 for padding) → float32 [texts, tokens, dimension].

        The result belongs to the caller. Vectors of padding are meaningless. Raises EncoderFailed.
        """


class Tokenizer(Protocol):
    """The tokenizer of the embedding model. Blocking, safe to call from several threads."""

    @property
    def window_tokens(self) -> int:
        """Tokens the model sees of a text, special tokens included."""

    @property
    def definition(self) -> bytes:
        """Hugging Face `tokenizers` JSON, UTF-8, without truncation and padding. Empty when there is none to publish."""

    def tokenize(self, texts: Sequence[str]) -> list[TokenIds]:
        """Token ids per text, special tokens included, cut to the window."""
