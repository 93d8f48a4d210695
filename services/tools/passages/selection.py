"""Choosing among passages: what says the same is said once, what fits is kept, and the best stand where a model reads best."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from kit.grounding import content_terms
from kit.ranking.duplicates import Duplicates
from services.tools.models import Passage
from services.tools.ports import Vector


@dataclass(frozen=True)
class Removed:
    """A passage that is left out for one that is kept."""

    passage: Passage
    kept: Passage
    stage: str
    """duplicate or near_duplicate."""


def without_duplicates(passages: Sequence[Passage]) -> tuple[list[Passage], list[Removed]]:
    """Each text once, nearly the same ones too; the best of each group is kept, and originals before what was forwarded."""
    by_key = {str(index): passage for index, passage in enumerate(passages)}
    groups = Duplicates(lambda key: " ".join(by_key[key].text.split()), by_key.__getitem__)
    kept, removed = groups.remove({key: float(-int(key)) for key in by_key}, len(by_key))
    return (
        [by_key[key] for key in kept],
        [Removed(by_key[each.chunk_id], by_key[each.kept_id], each.stage) for each in removed],
    )


def best_outside(passages: Sequence[Passage]) -> list[Passage]:
    """Passages that come best first, arranged so that the best stand first and last: models overlook what stands in the middle.

    Liu et al.: "Lost in the Middle: How Language Models Use Long Contexts", TACL 2024.
    """
    return [*passages[::2], *passages[1::2][::-1]]


def word_vectors(texts: Sequence[str]) -> list[Vector]:
    """Vectors by which texts are near that share words, L2-normalised: for when the model server does not answer."""
    words = [content_terms(text).content for text in texts]
    places = {word: place for place, word in enumerate(sorted(set(chain.from_iterable(words))))}
    rows = np.zeros((len(texts), max(len(places), 1)), dtype=np.float32)
    for row, found in zip(rows, words, strict=True):
        row[[places[word] for word in found]] = 1.0
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return list(rows / np.where(lengths == 0.0, 1.0, lengths))
