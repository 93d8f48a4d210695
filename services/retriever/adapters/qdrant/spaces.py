"""The embedding spaces on a Qdrant server: a collection each. The alias of the settings names the first; each other one has an
alias of its own, which has the name of its space behind that."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from services.retriever.adapters.qdrant.connection import QdrantConnection
from services.retriever.adapters.qdrant.index import QdrantIndex
from services.retriever.adapters.server_retry import OPEN_TIMEOUT_S
from services.retriever.adapters.space_names import space_slug
from services.retriever.concurrency import engine_deadline
from services.retriever.errors import EmbeddingSpaceMismatch, IndexUnavailable
from services.retriever.models import EmbeddingSpace
from services.retriever.options import QdrantOptions
from services.retriever.ports import DenseIndex

_log = structlog.get_logger()
_SEPARATOR = "."


class QdrantSpaces:
    """SpaceStore; any number of processes may use it. Open it with `QdrantSpaces.open`."""

    def __init__(
        self, options: QdrantOptions, first: QdrantIndex, observed: Callable[[DenseIndex], DenseIndex]
    ) -> None:
        self._options = options
        self._observed = observed
        self._own = {options.collection: first}
        self._shown: list[DenseIndex] = [observed(first)]
        self._preparing = asyncio.Lock()
        self._server = QdrantConnection(options)

    @classmethod
    async def open(
        cls, options: QdrantOptions, observed: Callable[[DenseIndex], DenseIndex] = lambda index: index
    ) -> "QdrantSpaces":
        """Finds what is there, as QdrantIndex does. Raises EngineUnsupported."""
        spaces = cls(options, await QdrantIndex.open(options), observed)
        try:
            async with engine_deadline(OPEN_TIMEOUT_S):
                await spaces.find()
        except IndexUnavailable as error:
            _log.warning("dense_index_unavailable", reason=error.reason, error=error.message)
        except BaseException:
            await spaces.close()
            raise
        return spaces

    async def close(self) -> None:
        """Closes the connections."""
        for index in self._own.values():
            await index.close()
        await self._server.close()

    @property
    def indexes(self) -> Sequence[DenseIndex]:
        return self._shown

    async def find(self) -> None:
        await self._own[self._options.collection].find()
        aliases = (await self._server.read(lambda client: client.get_aliases())).aliases
        prefix = f"{self._options.collection}{_SEPARATOR}"
        for alias in sorted(each.alias_name for each in aliases):
            if alias.startswith(prefix) and alias not in self._own:
                await self._add(alias)

    async def make_room(self, space: EmbeddingSpace) -> None:
        async with self._preparing:
            index = next((each for each in self._own.values() if each.space == space), None)
            if index is not None:
                await index.prepare(space)
                return
            await self.find()
            first = self._own[self._options.collection]
            if first.space is None:
                with contextlib.suppress(EmbeddingSpaceMismatch):  # another process begins it now, with another model
                    await first.prepare(space)
            if first.space == space:
                return
            alias = f"{self._options.collection}{_SEPARATOR}{space_slug(space)}"
            await (self._own.get(alias) or await self._add(alias)).prepare(space)

    async def _add(self, alias: str) -> QdrantIndex:
        index = await QdrantIndex.open(replace(self._options, collection=alias))
        self._own[alias] = index
        self._shown.append(self._observed(index))
        return index
