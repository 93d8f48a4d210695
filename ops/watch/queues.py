"""Keeps watch over the queues of deletions. A deletion was promised when it was queued, so a request that is lost is put in again.

A request leaves its queue when it is done, without a mark. So a request that waited and is gone was lost for certain only where the
queue ends before what is known of it, where it cannot be read, or where all services had stopped when the ledger was last written.
Doing a deletion twice is harmless: in doubt, at a start, it is put in again. Jobs of ingestion need no ledger: they are made from
the documents.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nats.js.errors import NotFoundError

from kit.errors import Unavailable
from kit.jetstream import Nats
from kit.jetstream.failures import translated_errors
from kit.jetstream.queues.work_queue import stream_config
from kit.jetstream.streams import REQUEST_TIMEOUT_S, subject_counts
from kit.state import Queue
from ops.state import QUEUES
from ops.watch.ledger import Entry, Ledger, StreamTotals
from ops.watch.records import read_totals

KEPT = tuple(queue for queue in QUEUES if queue.keeps_values)
_NOTHING = StreamTotals(0, 0, 0)


@dataclass(frozen=True)
class QueueComparison:
    """One queue, compared with what is known of it."""

    queue: Queue
    lost: Mapping[str, bytes]
    """Requests that are known to have waited and do not wait now, by subject, as :func:`_packed`."""
    is_certain: bool
    """They cannot have been done."""


@dataclass(frozen=True)
class StoredJob:
    """A job as it lies in its queue."""

    seq: int
    headers: Mapping[str, str]
    data: bytes


async def read_waiting_subjects(nats: Nats, queue: Queue, now: StreamTotals) -> set[str]:
    """Subjects of the jobs in a queue, those in hand included."""
    return set(await subject_counts(nats, queue.stream, ">", timeout_s=REQUEST_TIMEOUT_S)) if now.messages else set()


async def read_job(nats: Nats, queue: Queue, subject: str) -> StoredJob | None:
    """The last one on its subject; None when it was done meanwhile."""
    try:
        message = await nats.last_message(queue.stream, subject)
    except NotFoundError:
        return None
    return StoredJob(message.seq or 0, message.headers or {}, message.data or b"")


class QueueKeeper:
    """The queues of one store, and its ledger. Methods raise as those of Keeper."""

    def __init__(self, nats: Nats, ledger: Ledger) -> None:
        self._nats = nats
        self._ledger = ledger

    async def sync(self, *, final: bool = False) -> None:
        """Notes which requests wait. One that ends before what is known of it is left to the comparison."""
        known = await asyncio.to_thread(self._ledger.totals)
        for queue in KEPT:
            before, now = known.get(queue.stream, _NOTHING), await read_totals(self._nats, queue.stream)
            if now is None or now.last_seq < before.last_seq:
                continue
            entries = await asyncio.to_thread(self._ledger.entries, queue.stream)
            there = await read_waiting_subjects(self._nats, queue, now)
            new = [entry for subject in there - entries.keys() if (entry := await self._read(queue, subject))]
            done = entries.keys() - there
            now = replace(now, final=final)
            if new or done or now != before:
                await asyncio.to_thread(self._ledger.record, queue.stream, new, now, list(done))

    async def compare(self) -> tuple[QueueComparison, ...]:
        """Changes nothing."""
        known = await asyncio.to_thread(self._ledger.totals)
        return tuple([await self._compare(queue, known[queue.stream]) for queue in QUEUES if queue.stream in known])

    async def put_back(self, comparisons: Sequence[QueueComparison], *, quiet: bool) -> set[str]:
        """Puts lost requests in again, with the tokens that came with them; their subjects. `quiet`: no service runs, so those that
        may have been done are put in, too."""
        done: set[str] = set()
        for each in comparisons:
            if each.lost and (quiet or each.is_certain):
                await self._nats.ensure_stream(stream_config(each.queue))
                for subject, packed in each.lost.items():
                    headers, data = _unpacked(packed)
                    with translated_errors(each.queue.stream):
                        await self._nats.js.publish(subject, data, headers=headers)
                    done.add(subject)
        return done

    async def settle(self) -> None:
        """From now on what waits is what is known."""
        for queue in KEPT:
            known = await asyncio.to_thread(self._ledger.entries, queue.stream)
            await asyncio.to_thread(self._ledger.record, queue.stream, (), _NOTHING, list(known))
        await self.sync()

    async def _compare(self, queue: Queue, known: StreamTotals) -> QueueComparison:
        entries = await asyncio.to_thread(self._ledger.entries, queue.stream)
        now = await read_totals(self._nats, queue.stream)
        there = await read_waiting_subjects(self._nats, queue, now) if now else set()
        torn = await self._torn(queue, entries, there)
        gone = sorted((entries.keys() - there) | torn)
        lost = await asyncio.to_thread(self._ledger.values, queue.stream, gone)
        was_set_back = now is None or now.last_seq < known.last_seq
        return QueueComparison(queue, lost, known.final or was_set_back or bool(torn))

    async def _torn(self, queue: Queue, entries: Mapping[str, Entry], there: set[str]) -> set[str]:
        """Those that wait as far as the server's index knows, and cannot be read."""
        torn = set()
        for subject in entries.keys() & there:
            try:
                entry = await self._read(queue, subject)
            except Unavailable:  # of torn bytes the server says nothing at all
                return entries.keys() & there
            if entry is None:
                torn.add(subject)
        return torn & await read_waiting_subjects(
            self._nats, queue, await read_totals(self._nats, queue.stream) or _NOTHING
        )

    async def _read(self, queue: Queue, subject: str) -> Entry | None:
        job = await read_job(self._nats, queue, subject)
        if job is None:
            return None
        packed = _packed(job)
        return Entry(subject, job.seq, False, hashlib.sha256(packed).digest(), packed)


def _packed(job: StoredJob) -> bytes:
    return json.dumps({"headers": dict(job.headers), "data": base64.b64encode(job.data).decode()}).encode()


def _unpacked(packed: bytes) -> tuple[dict[str, str], bytes]:
    fields = json.loads(packed)
    return fields["headers"], base64.b64decode(fields["data"])
