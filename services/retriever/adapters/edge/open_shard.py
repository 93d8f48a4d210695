"""The shard that is in use, and its copy without what was removed. All methods are for the writer's thread.

The engine keeps a removed text in its payload file and its log until it happens to write there. So the points that are left are
copied into a new shard, whose files have never held the text. While that goes on, each change is made in both.
"""

import shutil
from pathlib import Path
from typing import Any

import qdrant_edge as qe

from services.retriever.adapters.edge import shards
from services.retriever.adapters.edge.points import STORED
from services.retriever.adapters.free_room import require_room
from services.retriever.errors import IndexUnavailable
from services.retriever.models import EmbeddingSpace

_POINTS_PER_FLUSH = 4096
"""Of a copy: its log stays small."""
_COPY_SIZES = 2
"""Free room on the disk that a copy needs, in sizes of what is there: the copy and its log."""


class OpenShard:
    """A shard whose engine may be replaced by a copy of itself."""

    def __init__(self, engine: Any, folder: Path, space: EmbeddingSpace) -> None:
        self.engine = engine
        self.space = space
        self.holds_removed = shards.holds_removed_texts(folder)
        """Whether files may hold texts that were removed."""
        self._folder = folder
        self._copy: tuple[Any, Path] | None = None
        self._copied = 0
        self._has_removed_since = False
        """Whether the copy may hold texts that were removed."""

    @classmethod
    def load(cls, folder: Path) -> "OpenShard":
        """Raises what the engine raises for damaged files."""
        space = shards.read_space(folder)
        return cls(qe.EdgeShard.load(str(folder)), folder, space)

    @property
    def is_to_be_copied(self) -> bool:
        """Whether there are removed texts that a copy in progress does not leave out."""
        return self.holds_removed and (self._copy is None or self._has_removed_since)

    def upsert(self, points: list[Any]) -> None:
        """Writes the points. What was under their ids stays in the files."""
        texts = {point.id: point.payload[STORED] for point in points}
        before = self.engine.retrieve(list(texts), [STORED], False)
        if any(record.payload[STORED] != texts[record.id] for record in before):
            self._note_removal()
        self._update(qe.UpdateOperation.upsert_points(points))

    def remove(self, condition: Any) -> None:
        """Removes the points of a filter."""
        if self.engine.count(qe.CountRequest(exact=True, filter=condition)):
            self._note_removal()
            self._update(qe.UpdateOperation.delete_points_by_filter(condition))

    def sync(self) -> None:
        """Has the disk keep all changes."""
        shards.sync(self._folder / shards.LOG)

    def begin_copy(self) -> None:
        """From now on each change is made in the copy, too. Raises IndexUnavailable where the disk has too little room."""
        require_room(self._folder, _COPY_SIZES)
        folder = shards.next_folder(self._folder.parent)
        try:
            self._copy, self._copied = (shards.make_empty(folder, self.space), folder), 0
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)  # else each attempt would leave one
            raise
        self._has_removed_since = False

    def copy_piece(self, offset: Any, limit: int, engine: Any) -> Any:
        """Copies up to `limit` points, from that with the id `offset` on. Returns the id of the next, None behind the last."""
        copy, _ = self._being_made()
        records, following = engine.scroll(
            qe.ScrollRequest(limit=limit, offset=offset, with_payload=True, with_vector=True)
        )
        if records:
            points = [qe.Point(record.id, record.vector, record.payload) for record in records]
            copy.update(qe.UpdateOperation.upsert_points(points))
        self._copied += len(records)
        if self._copied >= _POINTS_PER_FLUSH:
            copy.flush()
            self._copied = 0
        return following

    def switch(self) -> tuple[Any, Path]:
        """Uses the copy from now on. Returns the engine and the folder that it takes the place of."""
        copy, folder = self._being_made()
        copy.flush()
        shards.finish(folder, self.space, nothing_removed=not self._has_removed_since)
        shards.retire(self._folder)
        replaced = (self.engine, self._folder)
        self.engine, self._folder, self._copy = copy, folder, None
        self.holds_removed = self._has_removed_since
        return replaced

    def give_up_copy(self) -> None:
        """Goes on without a copy. Harmless when repeated."""
        if self._copy is not None:
            shards.close_and_remove(*self._copy)
            self._copy = None

    def _being_made(self) -> tuple[Any, Path]:
        if self._copy is None:
            raise IndexUnavailable(f"a copy of {self._folder} could not be written; it is made again later")
        return self._copy

    def _update(self, operation: Any) -> None:
        self.engine.update(operation)
        if self._copy is not None:
            try:
                self._copy[0].update(operation)
            except Exception:  # a copy that lacks a change is worth nothing, and the change itself was made
                self.give_up_copy()

    def _note_removal(self) -> None:
        self._has_removed_since = True
        if not self.holds_removed:
            shards.note_removal(self._folder)
            self.holds_removed = True
