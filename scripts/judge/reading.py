"""Reads texts with the embedding model as the model server does, and remembers their vectors in a file between two fits."""

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import numpy as np

from services.reranker.adapters.cpu_model import LoadedModel
from services.reranker.batching.padding import pad
from services.reranker.embedding.pooling import content_vectors
from services.reranker.judging.reading import ReadText, joined, read_text, with_vectors
from services.reranker.models import ContentVectors, Float32, TextKind, TokenIds

_BATCH = 24
_Texts = Iterable[tuple[str, str]]
"""Heading and text of each."""


class Reader:
    """Reads claims and passages."""

    def __init__(self, model: LoadedModel, cache: Path) -> None:
        """`cache`: a file, made where it is not there. It holds vectors of this model only."""
        if model.pieces_of is None:
            raise ValueError(f"the judge does not read with {model.model.name}")
        self._model, self._pieces_of, self._cache = model, model.pieces_of, cache
        self._prompt = model.model.prompts[TextKind.QUERY]
        self._prompt_tokens = len(self._pieces_of([self._prompt.strip()])[0])
        self._vectors: dict[bytes, ContentVectors] = {}

    def read_all(self, texts: _Texts) -> None:
        """Reads the texts whose vectors are not known, the shortest first."""
        wanted = {_key(heading, text): joined(heading, text) for heading, text in texts}
        with closing(sqlite3.connect(self._cache)) as cache:
            cache.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, tokens BLOB, pooled BLOB)")
            for key in wanted:
                for found in cache.execute("SELECT tokens, pooled FROM vectors WHERE key = ?", (key,)):
                    self._vectors[key] = _vectors(*found)
            missing = [key for key in wanted if key not in self._vectors]
            ids = dict(
                zip(
                    missing,
                    self._model.tokenizer.tokenize([self._prompt + wanted[key] for key in missing]),
                    strict=True,
                )
            )
            missing.sort(key=lambda key: len(ids[key]))
            for start in range(0, len(missing), _BATCH):
                batch = missing[start : start + _BATCH]
                with cache:
                    cache.executemany(
                        "INSERT INTO vectors VALUES (?, ?, ?)", self._read(batch, [ids[key] for key in batch])
                    )

    def _read(self, keys: Sequence[bytes], ids: Sequence[TokenIds]) -> list[tuple[bytes, bytes, bytes]]:
        encoded = self._model.encoder.encode(*pad(ids, 1))
        for row, key in enumerate(keys):
            self._vectors[key] = content_vectors(encoded.text(row, ids[row]), self._prompt_tokens)
        found = [(key, self._vectors[key]) for key in keys]
        return [(key, each.tokens.tobytes(), each.pooled.tobytes()) for key, each in found]

    def __call__(self, heading: str, text: str) -> ReadText:
        vectors = self._vectors[_key(heading, text)]
        words = read_text(text, heading, self._pieces_of)
        return with_vectors(text, heading, words, vectors.tokens, vectors.pooled)


def _key(heading: str, text: str) -> bytes:
    return sha256(joined(heading, text).encode()).digest()


def _vectors(tokens: bytes, pooled: bytes) -> ContentVectors:
    embedding: Float32 = np.frombuffer(pooled, np.float32)
    return ContentVectors(np.frombuffer(tokens, np.int8).reshape(-1, len(embedding)), embedding)
