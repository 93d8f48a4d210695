"""The embedding spaces of Qdrant Edge: a shard each. The first lies in the folder itself, the others in folders below it, named for
their spaces."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from kit.errors import GroundworkError
from services.retriever.adapters.edge.index import EdgeIndex
from services.retriever.adapters.space_names import space_slug
from services.retriever.models import EmbeddingSpace
from services.retriever.ports import DenseIndex

_FURTHER = "spaces"


class EdgeSpaces:
    """SpaceStore, and OwnIndex over all of them. Open it with `EdgeSpaces.open`."""

    def __init__(self, path: Path, observed: Callable[[DenseIndex], DenseIndex] = lambda index: index) -> None:
        """`observed`: what is put around each index."""
        self._path = path
        self._observed = observed
        self._own: list[EdgeIndex] = []
        self._shown: list[DenseIndex] = []
        self._damaged: EdgeIndex | None = None
        self._preparing = asyncio.Lock()
        self.suspected = asyncio.Event()
        self.removed = asyncio.Event()

    @classmethod
    async def open(cls, path: Path, observed: Callable[[DenseIndex], DenseIndex] = lambda index: index) -> "EdgeSpaces":
        """Opens what is there, as EdgeIndex does."""
        spaces = cls(path, observed)
        try:
            for folder in (path, *sorted((path / _FURTHER).glob("*"))):
                await spaces._add(folder)
        except BaseException:
            await spaces.close()
            raise
        return spaces

    async def close(self) -> None:
        """Closes all."""
        for index in self._own:
            await index.close()

    @property
    def indexes(self) -> Sequence[DenseIndex]:
        return self._shown

    async def find(self) -> None:
        """Nobody else writes to these folders."""

    async def make_room(self, space: EmbeddingSpace) -> None:
        async with self._preparing:
            if any(index.space == space for index in self._own):
                return
            empty = next((index for index in self._own if index.space is None), None)
            await (empty or await self._add(self._path / _FURTHER / space_slug(space))).prepare(space)

    async def inspect(self) -> str | None:
        """As OwnIndex: of the first that is damaged."""
        for index in self._own:
            problem = await index.inspect()
            if problem is not None:
                self._damaged = index
                return problem
        return None

    async def start_anew(self, problem: str) -> None:
        """As OwnIndex: the one that was found damaged."""
        if self._damaged is not None:
            await self._damaged.start_anew(problem)
            self._damaged = None

    async def erase(self) -> None:
        """As OwnIndex: in all, one after the other, also where it fails in one."""
        failed: Exception | None = None
        for index in list(self._own):
            try:
                await index.erase()
            except (GroundworkError, OSError) as error:
                failed = error
        if failed is not None:
            raise failed

    async def _add(self, folder: Path) -> EdgeIndex:
        index = await EdgeIndex.open(folder, suspected=self.suspected, removed=self.removed)
        self._own.append(index)
        self._shown.append(self._observed(index))
        return index
