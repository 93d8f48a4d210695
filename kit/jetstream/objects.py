"""Files in JetStream. Names are content hashes, so that storing the same file twice stores it once.

The layout is that of NATS object stores (ADR-20 of its architecture notes), which the server's own tools read. Files are written
and read here: the client's `put` first looks for a file to replace, and its `get` makes a consumer for every file, which costs the
server ten times what reading a small file does.
"""

import asyncio
import base64
import contextlib
import hashlib
import json
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from nats.errors import Error as NatsError
from nats.js import api
from nats.js.errors import NotFoundError
from nats.js.kv import MSG_ROLLUP_SUBJECT
from nats.js.object_store import OBJ_CHUNKS_PRE_TEMPLATE, OBJ_META_PRE_TEMPLATE, OBJ_STREAM_TEMPLATE

from kit.errors import DataLoss
from kit.jetstream.connection import Nats
from kit.jetstream.erasing import erase_messages
from kit.jetstream.opening import patient
from kit.jetstream.reading import StoredMessage, last_messages
from kit.jetstream.streams import subject_counts

PIECE_BYTES = 128 * 1024
"""What files are to be handed over in: the largest message of an object store by convention."""


@dataclass(frozen=True)
class StoredObject:
    """A file that is in the store."""

    name: str
    stored_at: datetime


class ObjectStore:
    """One bucket of files. All methods raise Unavailable when the server does not answer."""

    def __init__(self, nats_: Nats, name: str) -> None:
        self._nats = nats_
        self._js = nats_.js
        self._name = name
        self._stream = OBJ_STREAM_TEMPLATE.format(bucket=name)
        self._remains: set[tuple[str, int]] = set()
        """Pieces without an entry, and their last position, as the last `collect_remains` found them."""

    @classmethod
    @patient
    async def open(cls, nats: Nats, name: str) -> "ObjectStore":
        """Opens the store, making it on first use, on as many servers as `nats` says."""
        config = api.StreamConfig(
            name=OBJ_STREAM_TEMPLATE.format(bucket=name),
            subjects=[f"$O.{name}.C.>", f"$O.{name}.M.>"],
            storage=api.StorageType.FILE,
            discard=api.DiscardPolicy.NEW,
            allow_rollup_hdrs=True,
            allow_direct=True,
        )
        await nats.ensure_stream(config)
        return cls(nats, name)

    async def exists(self, name: str) -> bool:
        """Whether the file is there with every piece: one that damage left incomplete may be stored again."""
        try:
            info = await self._info(name)
        except (NotFoundError, DataLoss):
            return False
        pieces = self._piece_subject(info.nuid or "")
        return (await subject_counts(self._nats, self._stream, pieces)).get(pieces, 0) >= (info.chunks or 0)

    async def put(self, name: str, pieces: AsyncIterator[bytes]) -> None:
        """Stores a file of pieces of at most PIECE_BYTES. It is on the server's disk when this returns. The name must be free."""
        nuid = uuid.uuid4().hex
        subject = self._piece_subject(nuid)
        digest = hashlib.sha256()
        size = count = 0
        try:
            async for piece in pieces:
                digest.update(piece)
                await self._nats.store(self._stream, subject, piece, is_part=True)
                size += len(piece)
                count += 1
            await self._publish_info(
                api.ObjectInfo(
                    name=name,
                    bucket=self._name,
                    nuid=nuid,
                    size=size,
                    chunks=count,
                    digest=_digest_text(digest),
                    mtime=datetime.now(UTC).isoformat(),
                    options=api.ObjectMetaOptions(max_chunk_size=PIECE_BYTES),
                )
            )
        except BaseException:
            # Once: what cannot be removed now is collected later.
            with contextlib.suppress(NatsError, TimeoutError):
                await self._js.purge_stream(self._stream, subject=subject)
            raise

    async def get_to_file(self, name: str, path: Path) -> str:
        """Writes the stored file to `path` and returns its SHA-256 in hex. Raises DataLoss when the file is missing or its digest
        does not match."""
        try:
            try:
                info, digest = await self._read(name, path)
            except NotFoundError:
                await self._reach_majority()
                info, digest = await self._read(name, path)
        except NotFoundError as error:
            raise DataLoss(f"file {name} is not in the store; upload it again", reason="OBJECT_MISSING") from error
        if _digest_text(digest) != info.digest:
            raise DataLoss(f"file {name} is damaged in the store; upload it again", reason="OBJECT_DAMAGED")
        return digest.hexdigest()

    async def _reach_majority(self) -> None:
        """Returns once the servers we ask have a majority behind them. A leader that is cut off takes itself for one for some
        seconds, and says that there is not what the others have stored since; it cannot write, not even the removal of nothing."""
        await self._nats.purge(self._stream, self._piece_subject(uuid.uuid4().hex))

    async def _read(self, name: str, path: Path) -> "tuple[api.ObjectInfo, hashlib._Hash]":
        """What is stored about a file, and the digest of what was written to `path`. Raises NotFoundError."""
        info = await self._info(name)
        subject = self._piece_subject(info.nuid or "")
        digest = hashlib.sha256()
        with path.open("wb") as file:
            seq = 0
            for _ in range(info.chunks or 0):
                message = await self._piece_after(seq, subject)
                seq = message.seq or 0
                piece = message.data or b""
                digest.update(piece)
                if info.chunks == 1:
                    file.write(piece)  # a small file is not worth a thread
                else:
                    await asyncio.to_thread(file.write, piece)
        return info, digest

    async def _piece_after(self, seq: int, subject: str) -> api.RawStreamMsg:
        """From any replica, since pieces never change; from the leader what a replica that is behind does not have."""

        async def ask(timeout_s: float, *, direct: bool) -> api.RawStreamMsg:
            async with asyncio.timeout(timeout_s):
                return await self._js.get_msg(self._stream, seq=seq + 1, subject=subject, next=True, direct=direct)

        try:
            return await self._nats.persist(self._name, partial(ask, direct=True))
        except NotFoundError:
            return await self._nats.persist(self._name, partial(ask, direct=False))

    async def delete(self, name: str) -> None:
        """Removes the file; harmless when it is not there. Its entry goes first: pieces without an entry are collected later.
        No tombstone is left: nobody watches these stores."""
        try:
            message = await self._nats.last_message(self._stream, self._info_subject(name))
            await self._nats.delete(self._stream, message.seq or 0)
            nuid = _object_info(message.data).nuid
        except (NotFoundError, DataLoss):
            return
        await self._remove_pieces(self._piece_subject(nuid or ""))

    async def entries(self) -> AsyncIterator[StoredObject]:
        """The files that are there. Raises DataLoss when an entry is damaged."""
        async for info, message in self._infos():
            if not info.deleted:
                yield StoredObject(info.name, message.at)

    async def collect_remains(self, older_than: datetime) -> int:
        """Removes what was left behind before then: pieces of files whose `put` or `delete` was cut off, and the tombstones of
        other clients. Returns how many files that concerned. Raises DataLoss when an entry is damaged: its pieces may be needed.

        Pieces are removed when two calls in a row find them unchanged: age alone would take those of a file that is just being
        stored when the clock jumps."""
        used, found = set(), set()
        collected = 0
        async for info, message in self._infos():
            if not info.deleted:
                used.add(self._piece_subject(info.nuid or ""))
            elif message.at < older_than:
                await self._nats.delete(self._stream, message.position)
                collected += 1
        # Files whose entry came after these were read have young pieces. A replica that lags only collects less.
        pieces = last_messages(self._nats, self._stream, self._piece_subject("*"), headers_only=True, may_lag=True)
        async with contextlib.aclosing(pieces) as messages:
            async for message in messages:
                if message.subject not in used and message.at < older_than:
                    found.add((message.subject, message.position))
        for subject, _ in found & self._remains:
            await self._remove_pieces(subject)
            collected += 1
        self._remains = found
        return collected

    async def _remove_pieces(self, subject: str) -> None:
        """Also from the server's files: a purge alone leaves the bytes there."""
        await erase_messages(self._nats, self._stream, subject)
        await self._nats.purge(self._stream, subject)

    async def _infos(self) -> AsyncIterator[tuple[api.ObjectInfo, StoredMessage]]:
        """All entries, tombstones too, with the messages that hold them."""
        infos = last_messages(self._nats, self._stream, OBJ_META_PRE_TEMPLATE.format(bucket=self._name, obj="*"))
        async with contextlib.aclosing(infos) as messages:
            async for message in messages:
                yield _object_info(message.data), message

    async def _info(self, name: str) -> api.ObjectInfo:
        """What is stored about a file. Raises NotFoundError."""
        message = await self._nats.last_message(self._stream, self._info_subject(name))
        info = _object_info(message.data)
        if info.deleted:
            raise NotFoundError
        return info

    async def _publish_info(self, info: api.ObjectInfo) -> None:
        await self._nats.store(
            self._stream,
            self._info_subject(info.name),
            json.dumps(info.as_dict()).encode(),
            {api.Header.ROLLUP.value: MSG_ROLLUP_SUBJECT},
        )

    def _info_subject(self, name: str) -> str:
        return OBJ_META_PRE_TEMPLATE.format(bucket=self._name, obj=base64.urlsafe_b64encode(name.encode()).decode())

    def _piece_subject(self, nuid: str) -> str:
        return OBJ_CHUNKS_PRE_TEMPLATE.format(bucket=self._name, obj=nuid)


def _object_info(data: bytes | None) -> api.ObjectInfo:
    """Raises DataLoss."""
    try:
        info: api.ObjectInfo = api.ObjectInfo.from_response(json.loads(data or b""))
    except (ValueError, TypeError, AttributeError) as error:
        raise DataLoss(
            "the entry of a file in the store is damaged; upload the file again", reason="OBJECT_DAMAGED"
        ) from error
    return info


def _digest_text(digest: "hashlib._Hash") -> str:
    return f"SHA-256={base64.urlsafe_b64encode(digest.digest()).decode()}"
