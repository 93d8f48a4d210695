"""From the token vectors of one text to what a caller wants. The ONNX export ends at the last hidden state: mean pooling and
L2 normalisation, which make it all-MiniLM-L6-v2, are done here."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from services.reranker.models import Float32, TextVectors

Result = TypeVar("Result")
Reduction = Callable[[Float32], Result]
"""float32 [tokens, dimension], padding removed → what the caller wants. It must not keep a view of its argument."""

_SPECIAL_TOKENS = 2
_SMALLEST_NORM = 1e-12


def mean_pool(hidden: Float32) -> Float32:
    """float32 [tokens, dimension] → float32 [dimension], L2-normalised. All tokens count, special ones too, as in training."""
    return _normalised(hidden.mean(axis=0))


def text_vectors(hidden: Float32) -> TextVectors:
    """Vectors for late interaction: content tokens, each normalised, and the pooled embedding.

    [CLS] and [SEP] take part in the pooled vector only. A text of nothing else keeps them: it must still have a score.
    """
    content = hidden[1:-1] if len(hidden) > _SPECIAL_TOKENS else hidden
    return TextVectors(tokens=_normalised(content).astype(np.float16), pooled=mean_pool(hidden))


def _normalised(vectors: Float32) -> Float32:
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, _SMALLEST_NORM), dtype=np.float32)
