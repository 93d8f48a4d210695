"""Texts of different lengths as one rectangle."""

from collections.abc import Sequence

import numpy as np

from services.reranker.models import BatchLimits, Int64, Lane, TokenIds

_SHORT_TOKENS = 32
"""A query of a dozen words. Longer ones gain a smaller share, and each shape more is one to compile and keep."""


def padded_length(tokens: int, multiple: int) -> int:
    """`tokens` rounded up to a multiple."""
    return -(-tokens // multiple) * multiple


def multiple_for(lane: Lane, texts: Sequence[TokenIds], limits: BatchLimits) -> int:
    """What a batch is padded to a multiple of."""
    is_lone_query = lane is Lane.QUERY and len(texts) == 1 and len(texts[0]) <= _SHORT_TOKENS
    return (is_lone_query and limits.pad_lone_query_to) or limits.pad_to_multiple


def pad(texts: Sequence[TokenIds], multiple: int) -> tuple[Int64, Int64]:
    """Input ids and attention mask, int64 [texts, tokens] each; padding is 0 in both."""
    width = padded_length(max(len(ids) for ids in texts), multiple)
    input_ids = np.zeros((len(texts), width), dtype=np.int64)
    attention_mask = np.zeros_like(input_ids)
    for row, ids in enumerate(texts):
        input_ids[row, : len(ids)] = ids
        attention_mask[row, : len(ids)] = 1
    return input_ids, attention_mask
