"""Maximal marginal relevance: each hit is chosen for how relevant it is and how little it repeats those chosen before.

Carbonell and Goldstein: "The Use of MMR, Diversity-Based Reranking", SIGIR 1998.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kit.ranking.fusion import min_max


def most_diverse(
    ranked: Mapping[str, float], vectors: Mapping[str, NDArray[np.float32]], count: int, diversity: float
) -> list[str]:
    """`count` of the ranked chunks in the order of choice; the first is the best of them.

    (1 - diversity) · relevance - diversity · greatest cosine with those chosen; relevance is min-max normalised. A chunk
    without a vector is taken to repeat nothing.
    """
    ids = list(ranked)
    if not ids:
        return []
    relevance = np.array(min_max(list(ranked.values())), dtype=np.float32)
    dimension = next((len(vector) for vector in vectors.values()), 1)
    rows = np.stack([vectors.get(chunk_id, np.zeros(dimension, dtype=np.float32)) for chunk_id in ids])
    repeated = np.zeros(len(ids), dtype=np.float32)
    chosen: list[int] = []
    while len(chosen) < min(count, len(ids)):
        gains = (1.0 - diversity) * relevance - diversity * repeated
        gains[chosen] = -np.inf
        best = int(np.argmax(gains))
        chosen.append(best)
        repeated = np.maximum(repeated, rows @ rows[best])
    return [ids[index] for index in chosen]
