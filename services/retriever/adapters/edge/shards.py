"""The folders of an index's shard: how a shard is made, and which one is used after a kill.

A copy of the shard lies beside it under a number, and counts once its space file is there, which is written last. Before the copy
is written to, the space file of the shard that it takes the place of is removed. So where the folder without a number counts, it is
used: the copy holds nothing else, or is older (a release that knows no copies has begun anew there). Else the copy with the highest
number is used. All others are removed.
"""

import contextlib
import json
import os
import re
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import qdrant_edge as qe

from services.retriever.adapters.edge.points import LANGUAGE, PLACE
from services.retriever.indexes import filters
from services.retriever.models import EmbeddingSpace

_SHARD = "shard-v3"
"""Folder of this payload and these vectors. Change it with either: documents must then be indexed again."""
_NUMBERED = re.compile(rf"{_SHARD}\.(\d+)")
_BEING_CREATED = "shard.creating"
_SPACE_FILE = "space.json"
_NOTHING_REMOVED = "nothing-removed"
"""Exists while the files hold no removed text. Shards of earlier releases have none, so they are rewritten once."""
_DATATYPE = qe.VectorStorageDatatype.Float16
"""Half of the memory and disk, and a scan of 60 000 takes 10 ms, not 13. A cosine is off by 0.0001 at most."""
LOG = "wal"


def settled_folder(path: Path) -> Path:
    """The shard's folder, whether there is one or not, after what a kill or a copy left is cleared. Nothing may be open in it."""
    shutil.rmtree(path / _BEING_CREATED, ignore_errors=True)
    folder = path / _SHARD
    numbered = _numbered(path)
    whole = [number for number, shard in numbered.items() if (shard / _SPACE_FILE).exists()]
    if (folder / _SPACE_FILE).exists():
        whole = []
    for number, shard in numbered.items():
        if number not in whole[-1:]:
            shutil.rmtree(shard)
    if whole:
        shutil.rmtree(folder, ignore_errors=True)
        numbered[whole[-1]].rename(folder)
        _keep_entries(path)
    return folder


def logs(path: Path) -> list[Path]:
    """The logs of all shards that are there. An engine locks the log of the shard that it has open."""
    return [folder / LOG for folder in (path / _SHARD, *_numbered(path).values())]


def next_folder(path: Path) -> Path:
    """Where the next copy of the shard is made: nothing is there."""
    return path / f"{_SHARD}.{max(_numbered(path), default=0) + 1}"


def _numbered(path: Path) -> dict[int, Path]:
    matches = ((_NUMBERED.fullmatch(each.name), each) for each in path.iterdir())
    return dict(sorted((int(match[1]), each) for match, each in matches if match))


def create(path: Path, space: EmbeddingSpace) -> None:
    """Builds the first shard beside its place and renames it there, so that a kill leaves a whole one or none."""
    folder = path / _BEING_CREATED
    shutil.rmtree(folder, ignore_errors=True)
    shard = make_empty(folder, space)
    shard.flush()
    shard.close()
    finish(folder, space, nothing_removed=True)
    folder.rename(path / _SHARD)
    _keep_entries(path)


def make_empty(folder: Path, space: EmbeddingSpace) -> Any:
    """A shard without points, open. It does not count before it is finished."""
    folder.mkdir(parents=True)
    vectors = qe.EdgeVectorParams(size=space.dimension, distance=qe.Distance.Dot, datatype=_DATATYPE)
    shard = qe.EdgeShard.create(str(folder), qe.EdgeConfig(vectors=vectors))
    for field in (*filters.KEYWORD_FIELDS, PLACE, LANGUAGE):
        shard.update(qe.UpdateOperation.create_field_index(field, qe.PayloadSchemaType.Keyword))
    for field in filters.NUMERIC_FIELDS:
        shard.update(qe.UpdateOperation.create_field_index(field, qe.PayloadSchemaType.Integer))
    return shard


def finish(folder: Path, space: EmbeddingSpace, *, nothing_removed: bool) -> None:
    """Has a flushed shard count, also after a power cut."""
    if nothing_removed:
        (folder / _NOTHING_REMOVED).touch()
    for below, _, _ in os.walk(folder):
        sync(Path(below))
    written = folder / f"{_SPACE_FILE}.new"
    written.write_text(json.dumps(asdict(space)))
    sync(folder)
    written.rename(folder / _SPACE_FILE)
    sync(folder)
    _keep_entries(folder.parent)


def retire(folder: Path) -> None:
    """Has a shard not count any more, also after a power cut."""
    (folder / _SPACE_FILE).unlink(missing_ok=True)
    _keep_entries(folder)


def read_space(folder: Path) -> EmbeddingSpace:
    """What the shard's vectors are. Raises for a damaged file."""
    return EmbeddingSpace(**json.loads((folder / _SPACE_FILE).read_text()))


def holds_removed_texts(folder: Path) -> bool:
    """Whether files of the shard may hold texts that were removed."""
    return not (folder / _NOTHING_REMOVED).exists()


def note_removal(folder: Path) -> None:
    """Before the first removal: what is removed then may stay in the files."""
    (folder / _NOTHING_REMOVED).unlink(missing_ok=True)
    sync(folder)


def close_and_remove(shard: Any, folder: Path) -> None:
    """Lets go of a shard that is not used any more."""
    with contextlib.suppress(Exception):
        shard.close()
    with contextlib.suppress(OSError):
        retire(folder)  # first, so that a kill leaves no half of a shard that counts
    shutil.rmtree(folder, ignore_errors=True)


def sync(folder: Path) -> None:
    """Has the disk keep the files of a folder, and the folder itself: new files are entries of it."""
    while not all(_is_synced(path) for path in (*folder.iterdir(), folder)):
        pass  # the log renamed a segment after it was listed (a thread of its own prepares them): under its new name it is due


def _keep_entries(folder: Path) -> None:
    """Has the disk keep which files are in the folder."""
    _is_synced(folder)


def _is_synced(path: Path) -> bool:
    """False when nothing has this name any more."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    return True
