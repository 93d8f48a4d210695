"""The domain of the model server: texts as token ids, vectors, and what a model says of itself."""

from dataclasses import dataclass
from enum import Enum, IntEnum

import numpy as np
import numpy.typing as npt

Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]
TokenIds = Int64
"""int64 [tokens]: one text as the model reads it, special tokens included, cut to the model's window."""


class TextKind(Enum):
    """What a text is to the search: some models prepend different instructions to queries and passages."""

    QUERY = "query"
    PASSAGE = "passage"


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


@dataclass(frozen=True)
class Embeddings:
    """Vectors in the order of the request."""

    vectors: Float32
    """float32 [texts, dimension], each row L2-normalised."""

    token_counts: list[int]
    """Tokens the model read per text, special tokens included, after truncation."""


@dataclass(frozen=True)
class TextVectors:
    """A text as late interaction sees it."""

    tokens: npt.NDArray[np.float16]
    """float16 [content tokens, dimension], each row L2-normalised. Half precision halves the cache and moves a score by
    less than 0.001."""

    pooled: Float32
    """float32 [dimension], L2-normalised: the text's embedding."""

    @property
    def size_bytes(self) -> int:
        return self.tokens.nbytes + self.pooled.nbytes


@dataclass(frozen=True)
class ModelInfo:
    """What the server says of its models."""

    embedding_model: str
    """Name under which vectors are stored: vectors of different models never meet in one index."""

    rerank_model: str
    """Name of the scorer."""

    dimension: int
    """Length of an embedding."""

    window_tokens: int
    """Tokens the model sees of a text, special tokens included."""

    runtime: str
    """Runtime and device, for example "openvino/cpu"."""
