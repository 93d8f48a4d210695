"""What the core needs from a vendor: something that turns token ids into vectors, something that makes token ids; or, where both
happen elsewhere, something that embeds or scores texts."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from services.reranker.models import (
    Embeddings,
    Encoded,
    Float32,
    Int64,
    TextKind,
    TextVectors,
    TokenIds,
    TokenizerDefinition,
)


class Encoder(Protocol):
    """A transformer. Blocking: the batcher calls it from `streams` threads of its own.

    Each text becomes one row: an embedding, or the score of a cross-encoder. A model for late interaction shows its token
    vectors, too.
    """

    @property
    def dimension(self) -> int:
        """Length of a row."""

    @property
    def runtime(self) -> str:
        """Runtime and device, for example "openvino/cpu"."""

    @property
    def streams(self) -> int:
        """Batches that it computes at once without one slowing down another."""

    def encode(self, input_ids: Int64, attention_mask: Int64) -> Encoded:
        """int64 [texts, tokens] twice (mask: 1 for a token, 0 for padding).

        The result belongs to the caller. Raises EncoderFailed; DeviceMemoryExhausted when a smaller batch may fit.
        """


class Tokenizer(Protocol):
    """The tokenizer of the embedding model. Blocking, safe to call from several threads."""

    @property
    def window_tokens(self) -> int:
        """Tokens the model sees of a text, special tokens included."""

    @property
    def definition(self) -> TokenizerDefinition:
        """For who counts tokens elsewhere."""

    def tokenize(self, texts: Sequence[str]) -> list[TokenIds]:
        """Token ids per text, special tokens included, cut to the window."""

    def rarities(self, ids: TokenIds) -> Float32:
        """float32 [tokens], more than 0: how much each counts in a query. All alike where nothing is known of them."""


class PairTokenizer(Protocol):
    """The tokenizer of a cross-encoder, which reads query and passage as one text. Blocking, safe to call from several threads."""

    @property
    def window_tokens(self) -> int:
        """Tokens the model sees of a pair, special tokens included."""

    def tokenize_pairs(self, query_text: str, passages: Sequence[str]) -> list[TokenIds]:
        """Token ids of the query with each passage, special tokens included; the longer of both is cut to fit the window."""


class TextEmbedder(Protocol):
    """Embeds checked texts, wherever the model runs."""

    async def embed(
        self, texts: Sequence[str], kind: TextKind, timeout_s: float | None, *, keep_token_vectors: bool = False
    ) -> Embeddings:
        """Vectors in the order of `texts`. Where token vectors are scored with, they are kept if the caller wants it."""


class TextReranker(Protocol):
    """Scores passages against a query, wherever the model runs."""

    async def rerank(
        self,
        query_text: str,
        passages: Sequence[str],
        timeout_s: float | None,
        *,
        candidates_are_ranked: bool = False,
        content_hashes: Sequence[str] = (),
    ) -> list[float]:
        """One score per passage, in the order of `passages`; higher is better."""


class PassageStore(Protocol):
    """Token vectors that outlive the process. Blocking, safe to call from several threads. It is a cache: it may forget anything
    at any time, and never raises because of what is on the disk."""

    def get(self, keys: Sequence[bytes]) -> dict[bytes, TextVectors]:
        """Those that it has."""

    def put(self, entries: Mapping[bytes, TextVectors]) -> None:
        """Keeps these; the oldest make room."""

    def forget(self, keys: Sequence[bytes]) -> None:
        """Removes these, whichever model made them, so that nothing of them can be read from the disk. Raises
        PassageStoreUnavailable when the disk does not let it."""

    def collect(self) -> int:
        """Removes some of what nobody has used for long; returns how many, 0 when there are none left."""
