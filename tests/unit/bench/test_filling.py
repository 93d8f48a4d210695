"""What the store is filled with: vectors that a search can find, texts that it does not drop."""

import numpy as np

from bench import filling
from bench.filling import clustered_unit_vectors


def test_vectors_are_normalised_and_near_a_center() -> None:
    rng = np.random.default_rng(5)
    centers = rng.standard_normal((8, 384)).astype(np.float32)
    centers /= np.linalg.norm(centers, axis=1, keepdims=True)
    vectors = clustered_unit_vectors(rng, centers, 500)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-5)
    nearest = (vectors @ centers.T).max(axis=1)
    assert 0.7 < nearest.mean() < 0.85


def test_texts_are_all_different_beyond_those_that_are_written(monkeypatch) -> None:
    monkeypatch.setattr(filling, "_WRITTEN", 20)
    texts = filling._texts(70)
    assert len(set(texts)) == 70
