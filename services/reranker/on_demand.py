"""A model that few texts need is loaded for the first of them."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Generic, TypeVar

from services.reranker.errors import RequestExpired
from services.reranker.models import Embeddings, TextKind
from services.reranker.ports import TextEmbedder

Model = TypeVar("Model")


class OnDemandEmbedder(Generic[Model]):
    """TextEmbedder whose model is loaded with the first request, on the executor, and kept. Loading goes on when the request that
    began it is over; one that failed is tried again with the next request. For one event loop."""

    def __init__(
        self, load: Callable[[], Model], embedder_of: Callable[[Model], TextEmbedder], executor: Executor
    ) -> None:
        self._load = load
        self._embedder_of = embedder_of
        self._executor = executor
        self._loading: asyncio.Future[Model] | None = None
        self._embedder: TextEmbedder | None = None

    async def embed(
        self, texts: Sequence[str], kind: TextKind, timeout_s: float | None, *, keep_token_vectors: bool = False
    ) -> Embeddings:
        """As TextEmbedder. Raises what loading raises, or RequestExpired when it takes longer than `timeout_s`."""
        if self._embedder is None:
            self._embedder = self._embedder_of(await self._loaded(timeout_s))
        return await self._embedder.embed(texts, kind, timeout_s, keep_token_vectors=keep_token_vectors)

    async def _loaded(self, timeout_s: float | None) -> Model:
        if self._loading is None or (self._loading.done() and self._loading.exception() is not None):
            self._loading = asyncio.get_running_loop().run_in_executor(self._executor, self._load)
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(self._loading)
        except TimeoutError as error:
            raise RequestExpired("the model was not loaded within the deadline; ask again, loading goes on") from error
