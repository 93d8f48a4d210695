"""From the hidden states of a text to what a caller wants. The ONNX export ends at the last hidden state: mean pooling and L2
normalisation, which make it all-MiniLM-L6-v2, happen here or in the runtime's graph.

Late interaction compares token vectors turned by a fixed random rotation, which spreads what they hold over all their numbers
alike. Those of passages are kept in two bits a number, at the four levels that are nearest to normally distributed numbers (Max:
"Quantizing for minimum distortion", IRE Transactions on Information Theory 1960); those of queries are not rounded so. A text of
200 tokens takes 20 KB and is found as well as with 384 numbers of float32, 308 KB (docs/adr/0020).
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from services.reranker.models import (
    ContentVectors,
    Encoded,
    EncodedText,
    Float32,
    Int8,
    Int64,
    QueryVectors,
    TextVectors,
    TokenIds,
    UInt8,
)

Result = TypeVar("Result")
Reduction = Callable[[EncodedText], Result]
"""One text as the model sees it → what the caller wants. It must not keep a view of its argument."""

TOKEN_STEPS = 25
"""A token vector leaves the model as int8: its numbers, for a mean square of one, times this."""
VECTOR_FORMAT = "rotated-2-bit/1"
"""Name of what `rotation` and `packed` make of a hidden state. Vectors of different formats never meet."""
NUMBERS_A_BYTE = 4

_SEED = 384
_LEVELS = np.array([-1.711, -0.5131, 0.5131, 1.711], np.float32)
"""What each code stands for: Max's 0.4528 and 1.510, divided by 0.8825 so that products with vectors not so rounded are right on
average."""
_OUTER = 0.9816 * TOKEN_STEPS
"""From here on a number has an outer level."""
_SPECIAL_TOKENS = 2
_SMALLEST_NORM = 1e-12


def rotation(dimension: int) -> Float32:
    """float32 [dimension, dimension], orthonormal: the same on every machine and with every numpy.

    RandomState's stream is frozen (NEP 19), and a QR decomposition is unique once the diagonal of R is positive.
    """
    gaussian = np.random.RandomState(_SEED).standard_normal((dimension, dimension))
    q, r = np.linalg.qr(gaussian)
    return np.asarray(q * np.sign(np.diag(r)), dtype=np.float32)


def reduce_hidden(hidden: Float32, attention_mask: Int64, turned: Float32) -> Encoded:
    """For runtimes whose graph ends at the hidden states, float32 [texts, tokens, dimension]. `turned`: the rotation."""
    sums = np.matmul(attention_mask[:, np.newaxis, :].astype(np.float32), hidden)[:, 0]
    steps = np.rint(normalised(hidden @ turned) * token_scale(hidden.shape[-1]))
    return Encoded(normalised(sums), np.clip(steps, -127, 127).astype(np.int8))


def token_scale(dimension: int) -> float:
    """What the numbers of a token vector of length one are multiplied with."""
    return float(TOKEN_STEPS * np.sqrt(dimension))


def pooled(text: EncodedText) -> Float32:
    """float32 [dimension], L2-normalised: the text's embedding."""
    return text.pooled.copy()


def pair_score(text: EncodedText) -> float:
    """A cross-encoder's score."""
    return float(text.pooled[0])


def text_vectors(text: EncodedText, prompt_tokens: int = 0) -> TextVectors:
    """A passage as late interaction sees it: content tokens, and the embedding.

    [CLS], [SEP] and the tokens of a prompt behind [CLS] take part in the pooled vector only. A text of nothing else keeps them: it
    must still have a score.
    """
    return TextVectors(packed(text.token_vectors[_content(text, prompt_tokens)]), text.pooled.copy())


def query_vectors(text: EncodedText, rarities: Callable[[TokenIds], Float32], prompt_tokens: int = 0) -> QueryVectors:
    """A query as late interaction sees it. Rarer tokens have longer vectors, and so count more in a mean over all."""
    content = _content(text, prompt_tokens)
    tokens = text.token_vectors[content] / np.float32(token_scale(text.token_vectors.shape[1]))
    weights = rarities(text.ids[content])
    return QueryVectors(tokens * (weights / weights.mean())[:, np.newaxis], text.pooled.copy())


def content_vectors(text: EncodedText, prompt_tokens: int = 0) -> ContentVectors:
    """A text as the judge of claims sees it: content tokens, not rounded further, and the embedding."""
    return ContentVectors(text.token_vectors[_content(text, prompt_tokens)].copy(), text.pooled.copy())


def _content(text: EncodedText, prompt_tokens: int) -> slice:
    has_content = len(text.token_vectors) > _SPECIAL_TOKENS + prompt_tokens
    return slice(1 + prompt_tokens, -1) if has_content else slice(None)


def packed(tokens: Int8) -> UInt8:
    """uint8 [tokens, dimension / 4]: two bits a number, the first of four numbers in the lowest."""
    codes = sum(((tokens >= least).view(np.uint8) for least in (0, _OUTER)), (tokens > -_OUTER).view(np.uint8))
    return np.asarray(codes.reshape(len(codes), -1, NUMBERS_A_BYTE) @ _PLACES, np.uint8)


def unpacked(tokens: UInt8) -> Float32:
    """float32 [tokens, dimension]: vectors of a mean square of one, on average."""
    numbers: Float32 = _FOUR_LEVELS.take(tokens).view(np.float32)
    return numbers


_PLACES = np.array([1, 4, 16, 64], np.uint8)
_FOUR_LEVELS = _LEVELS[np.arange(256)[:, np.newaxis] // _PLACES % 4].view(np.complex128)[:, 0]
"""complex128 [256]: 16 bytes an entry, which hold the four numbers of a byte. numpy looks numbers up ten times as fast as rows."""


def normalised(vectors: Float32) -> Float32:
    """Rows of length one; a row of zeros stays one."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(norms, _SMALLEST_NORM), dtype=np.float32)
