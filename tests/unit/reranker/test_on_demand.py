"""A model that is loaded with the first text for it."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

import numpy as np
import pytest

from services.reranker.errors import ModelFileMissing, RequestExpired
from services.reranker.models import Embeddings, TextKind
from services.reranker.on_demand import OnDemandEmbedder

PATIENT_S = 20.0


class Embedder:
    """Each text becomes the number that it was loaded with."""

    def __init__(self, number: int) -> None:
        self._number = number

    async def embed(
        self, texts: Sequence[str], kind: TextKind, timeout_s: float | None, *, keep_token_vectors: bool = False
    ) -> Embeddings:
        return Embeddings(np.full((len(texts), 1), self._number, np.float32), [1] * len(texts))


class Loads:
    """Counts them; the first may wait for the test, or fail."""

    def __init__(self) -> None:
        self.count = 0
        self.may_end = threading.Event()
        self.may_end.set()
        self.error: Exception | None = None

    def __call__(self) -> int:
        self.count += 1
        assert self.may_end.wait(PATIENT_S)
        if self.error is not None:
            raise self.error
        return self.count


async def answer(embedder: OnDemandEmbedder[int], timeout_s: float = PATIENT_S) -> float:
    return float((await embedder.embed(["text"], TextKind.QUERY, timeout_s)).vectors[0, 0])


def on_demand(loads: Callable[[], int], executor: Executor) -> OnDemandEmbedder[int]:
    return OnDemandEmbedder(loads, Embedder, executor)


async def test_nothing_is_loaded_before_the_first_text_and_once_for_all(executor: Executor) -> None:
    loads = Loads()
    embedder = on_demand(loads, executor)
    assert loads.count == 0
    assert [await answer(embedder) for _ in range(3)] == [1.0] * 3
    assert loads.count == 1


async def test_request_that_cannot_wait_is_refused_and_loading_goes_on(executor: Executor) -> None:
    loads = Loads()
    loads.may_end.clear()
    embedder = on_demand(loads, executor)
    with pytest.raises(RequestExpired):
        await answer(embedder, timeout_s=0.01)
    loads.may_end.set()
    assert await answer(embedder) == 1.0
    assert loads.count == 1


async def test_loading_that_failed_is_tried_again(executor: Executor) -> None:
    loads = Loads()
    loads.error = ModelFileMissing("not there")
    embedder = on_demand(loads, executor)
    with pytest.raises(ModelFileMissing):
        await answer(embedder)
    loads.error = None
    assert await answer(embedder) == 2.0
