"""From the hidden states of a text to what a caller wants. The ONNX export ends at the last hidden state: mean pooling and L2
normalisation, which make it all-MiniLM-L6-v2, happen here or in the runtime's graph.

Late interaction reads token vectors of 96 numbers in int8: a fixed random projection, which keeps angles (Johnson-Lindenstrauss),
normalised, in steps of 1/127. nDCG@10 on SciFact is 0.739 with it and 0.740 with all 384 numbers; a text of 200 tokens takes
20 KB instead of 77 (docs/adr/0008).
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from services.reranker.models import Encoded, EncodedText, Float32, Int64, TextVectors

Result = TypeVar("Result")
Reduction = Callable[[EncodedText], Result]
"""One text as the model sees it → what the caller wants. It must not keep a view of its argument."""

TOKEN_DIMENSION = 96
TOKEN_STEPS = 127
"""A token vector is int8: its numbers times this."""
VECTOR_FORMAT = "random-96-int8/1"
"""Name of what `token_projection` and the steps make of a hidden state. Vectors of different formats never meet."""

_SEED = 96
_SPECIAL_TOKENS = 2
_SMALLEST_NORM = 1e-12


def token_projection(dimension: int) -> Float32:
    """float32 [dimension, TOKEN_DIMENSION], orthonormal columns: the same on every machine and with every numpy.

    RandomState's stream is frozen (NEP 19), and a QR decomposition is unique once the diagonal of R is positive.
    """
    gaussian = np.random.RandomState(_SEED).standard_normal((dimension, min(TOKEN_DIMENSION, dimension)))
    q, r = np.linalg.qr(gaussian)
    return np.asarray(q * np.sign(np.diag(r)), dtype=np.float32)


def reduce_hidden(hidden: Float32, attention_mask: Int64, projection: Float32) -> Encoded:
    """For runtimes whose graph ends at the hidden states, float32 [texts, tokens, dimension]."""
    sums = np.matmul(attention_mask[:, np.newaxis, :].astype(np.float32), hidden)[:, 0]
    steps = np.rint(normalised(hidden @ projection) * TOKEN_STEPS)
    return Encoded(normalised(sums), steps.astype(np.int8))


def pooled(text: EncodedText) -> Float32:
    """float32 [dimension], L2-normalised: the text's embedding."""
    return text.pooled.copy()


def pair_score(text: EncodedText) -> float:
    """A cross-encoder's score."""
    return float(text.pooled[0])


def text_vectors(text: EncodedText, prompt_tokens: int = 0) -> TextVectors:
    """What late interaction needs: content tokens, and the embedding.

    [CLS], [SEP] and the tokens of a prompt behind [CLS] take part in the pooled vector only. A text of nothing else keeps them: it
    must still have a score.
    """
    tokens = text.token_vectors
    content = tokens[1 + prompt_tokens : -1] if len(tokens) > _SPECIAL_TOKENS + prompt_tokens else tokens
    return TextVectors(content.copy(), text.pooled.copy())


def normalised(vectors: Float32) -> Float32:
    """Rows of length one; a row of zeros stays one."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, _SMALLEST_NORM), dtype=np.float32)
