"""The domain of the model server: texts as token ids, vectors, and what a model says of itself."""

from dataclasses import dataclass
from enum import Enum, IntEnum

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]
Int8 = npt.NDArray[np.int8]
UInt8 = npt.NDArray[np.uint8]
Int64 = npt.NDArray[np.int64]
TokenIds = Int64
"""int64 [tokens]: one text as the model reads it, special tokens included, cut to the model's window."""


class TextKind(Enum):
    """What a text is to the search: some models prepend different instructions to queries and passages."""

    QUERY = "query"
    PASSAGE = "passage"


class Provider(Enum):
    """Where a model runs."""

    REMOTE = "remote"
    GPU = "gpu"
    CPU = "cpu"


class Lane(IntEnum):
    """Who goes first when callers compete for the model: the lower number."""

    QUERY = 0
    """Embedding a query: a person waits, and it is one short text."""
    RERANK = 1
    """Reranking: a person waits, and it is tens of texts."""
    PASSAGE = 2
    """Embedding passages: a background job waits, and it is thousands of texts."""


@dataclass(frozen=True)
class BatchLimits:
    """How large a batch may grow, and how much may wait."""

    max_tokens: int
    """Tokens of one batch, padding counted."""

    max_texts: int
    """Texts of one batch."""

    pad_to_multiple: int
    """Texts are padded to a multiple of this many tokens, so that the runtime meets few distinct shapes."""

    max_queued_tokens: int
    """Tokens that may wait in one lane, padding counted."""

    pad_lone_query_to: int = 0
    """The multiple for a short query that is computed alone; 0: as all texts. Its shapes are few, and somebody waits for it."""


@dataclass(frozen=True)
class Embeddings:
    """Vectors in the order of the request."""

    vectors: Float32
    """float32 [texts, dimension], each row L2-normalised."""

    token_counts: list[int]
    """Tokens the model read per text, special tokens included, after truncation."""


@dataclass(frozen=True)
class EncodedText:
    """One text as the model sees it: views into its batch."""

    pooled: Float32
    """float32 [dimension]."""

    token_vectors: Int8
    """int8 [tokens, dimension], special tokens included, padding not."""

    ids: TokenIds
    """int64 [tokens]."""


@dataclass(frozen=True)
class Encoded:
    """A batch as the model sees it."""

    pooled: Float32
    """float32 [texts, dimension]: L2-normalised embeddings; of a cross-encoder its score, [texts, 1]."""

    token_vectors: Int8 | None = None
    """int8 [texts, tokens, dimension]: per token a vector of length one, turned, times `pooling.token_scale`; meaningless for
    padding. None: the model has none to show."""

    def text(self, row: int, ids: TokenIds) -> EncodedText:
        """One text of the batch, whose tokens are `ids`, without its padding."""
        if self.token_vectors is None:
            return EncodedText(self.pooled[row], _NO_TOKENS, ids)
        return EncodedText(self.pooled[row], self.token_vectors[row, : len(ids)], ids)


_NO_TOKENS: Int8 = np.zeros((0, 0), np.int8)


@dataclass(frozen=True)
class TextVectors:
    """A passage as late interaction sees it: in memory and on disk alike."""

    tokens: UInt8
    """uint8 [content tokens, dimension / 4]: two bits a number, as `pooling.packed` makes them."""

    pooled: Float32
    """float32 [dimension], L2-normalised: the text's embedding."""

    @property
    def size_bytes(self) -> int:
        return self.tokens.nbytes + self.pooled.nbytes


@dataclass(frozen=True)
class ContentVectors:
    """A text as the judge of claims sees it, in memory."""

    tokens: Int8
    """int8 [content tokens, dimension]: each as long as `pooling.token_scale` says."""

    pooled: Float32
    """float32 [dimension], L2-normalised: the text's embedding."""

    @property
    def size_bytes(self) -> int:
        return self.tokens.nbytes + self.pooled.nbytes


@dataclass(frozen=True)
class QueryVectors:
    """A query as late interaction sees it, in memory."""

    tokens: Float32
    """float32 [content tokens, dimension]: of the length that the token counts; one on average."""

    pooled: Float32
    """float32 [dimension], L2-normalised: the query's embedding."""

    @property
    def size_bytes(self) -> int:
        return self.tokens.nbytes + self.pooled.nbytes


@dataclass(frozen=True)
class VectorSpace:
    """What token vectors must have in common to be compared."""

    name: str
    """The model, and what was made of its hidden states."""

    dimension: int
    """Length of an embedding."""

    token_bytes: int
    """Of a token vector."""


class TokenizerForm(Enum):
    """How a tokenizer is written down."""

    HUGGING_FACE = "hugging face"
    """JSON of the library `tokenizers`, UTF-8, without truncation and padding."""
    SENTENCEPIECE = "sentencepiece"
    """A serialized SentencePiece ModelProto."""


@dataclass(frozen=True)
class TokenizerDefinition:
    """A tokenizer, for who counts tokens elsewhere. Empty content: there is none to publish."""

    form: TokenizerForm
    content: bytes


@dataclass(frozen=True)
class EmbeddingModelInfo:
    """What the server says of a model that makes embeddings."""

    name: str
    """Under which vectors are stored: vectors of different models never meet in one index."""

    dimension: int
    """Length of an embedding."""

    window_tokens: int
    """Tokens the model sees of a text, special tokens included."""

    runtime: str
    """Runtime and device, for example "openvino/cpu"."""


@dataclass(frozen=True)
class ModelInfo:
    """What the server says of its models."""

    embedding: EmbeddingModelInfo
    """The model for new texts."""

    rerank_model: str
    """Name of the scorer."""

    rerank_runtime: str
    """Its runtime and device."""

    others: tuple[EmbeddingModelInfo, ...] = ()
    """Models that queries can be embedded with, for vectors that they made earlier."""
