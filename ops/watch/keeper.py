"""Keeps the ledger, compares it with the store, and puts back what it can."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from nats.js.errors import APIError, NotFoundError
from nats.js.kv import KV_OP, KV_PURGE, MSG_ROLLUP_SUBJECT

from kit.errors import Unavailable
from kit.jetstream import KeyValue, Nats
from kit.jetstream.failures import translated_errors
from kit.state import DAY_S, Bucket, Store
from ops.watch.compare import (
    Comparison,
    Deviation,
    Difference,
    Repair,
    StreamComparison,
    compare,
    messages_missing,
    only_losses,
)
from ops.watch.ledger import Entry, Ledger, StreamTotals
from ops.watch.queues import QueueKeeper
from ops.watch.records import (
    COUNTED,
    VALUE_BYTES_MAX,
    WATCHED,
    fields_of,
    file_name,
    find_whole_files,
    noted_source,
    read_entries,
    read_entry,
    read_totals,
)
from ops.watch.runs import marker_for, says_text_is_kept
from services.ingest.state import DOCUMENTS, FILES
from services.orchestrator.state import MARKERS, RECORDS, RUNS, SOURCES, STORED_RUNS_NOTED

_EXPECTED_SEQ = "Nats-Expected-Last-Subject-Sequence"
_ROLLUP = "Nats-Rollup"
_NOTHING = StreamTotals(0, 0, 0)


class Keeper:
    """One store and its ledger. Methods raise Unavailable when the store, sqlite3.Error when the ledger does not answer."""

    def __init__(self, nats: Nats, ledger: Ledger) -> None:
        self._nats = nats
        self._ledger = ledger
        self.queues = QueueKeeper(nats, ledger)

    async def sync(self, *, final: bool = False) -> None:
        """Notes what was written since the last time. `final`: all writers have stopped, so counts are exact."""
        known = await asyncio.to_thread(self._ledger.totals)
        for watched in WATCHED:
            now = await read_totals(self._nats, watched.stream)
            before = known.get(watched.stream, _NOTHING).last_seq
            if now and now.last_seq > before:
                entries = await read_entries(self._nats, watched, after=before)
                await self._record(watched, list(entries.values()), now)
        for store in COUNTED:
            if now := await read_totals(self._nats, store.stream):
                exact = replace(now, final=final)
                await asyncio.to_thread(self._ledger.record, store.stream, (), exact)
        await self.queues.sync(final=final)

    async def compare(self) -> Comparison:
        """Every entry of the store with what is known of it. Changes nothing."""
        known = await asyncio.to_thread(self._ledger.totals)
        streams = [await self._compare(watched, known.get(watched.stream)) for watched in WATCHED]
        missing = {}
        for store in COUNTED:
            if before := known.get(store.stream):
                missing[store] = messages_missing(before, await read_totals(self._nats, store.stream) or _NOTHING)
        files = streams[WATCHED.index(FILES)]
        described = {subject: entry.value or b"" for subject, entry in files.found.items() if not entry.gone}
        exists = await read_totals(self._nats, FILES.stream)
        whole = await find_whole_files(self._nats, {**files.known_values, **described}) if exists else set()
        fileless = await self._fileless(streams[WATCHED.index(DOCUMENTS)], whole)
        kept_runs = await self._kept_runs(streams[WATCHED.index(SOURCES)])
        open_runs = await self._open_runs(streams[WATCHED.index(MARKERS)])
        losses = tuple(only_losses(streams, whole, kept_runs, open_runs))
        return Comparison(losses, frozenset(whole), missing, tuple(fileless), await self.queues.compare())

    async def mend(self, comparison: Comparison, repairs: Sequence[Repair]) -> set[str]:
        """Makes the repairs; the subjects of those that were made. An entry that was written meanwhile stays as it is."""
        are_sources_lost = bool(comparison.of(SOURCES).deviations)
        for store in {watched for watched, _ in repairs} | ({SOURCES} if are_sources_lost else set()):
            if isinstance(store, Bucket):
                await KeyValue.open(self._nats, store.name, ttl_s=store.kept_for_s, erases=store.is_erased)
        if are_sources_lost:
            await self._remove(
                SOURCES, SOURCES.prefix + STORED_RUNS_NOTED
            )  # what the ledger does not know either is in the runs' logs
        mended: set[str] = set()
        silent: set[Store] = set()
        for watched, deviation in repairs:
            if watched in silent:
                continue
            try:
                if await self._repair(watched, deviation, comparison.of(watched).known_values):
                    mended.add(deviation.subject)
            except Unavailable:  # what the server cannot read, it does not replace either, and says nothing
                silent.add(watched)
        return mended

    async def _repair(self, watched: Store, deviation: Deviation, values: Mapping[str, bytes]) -> bool:
        if deviation.kind is Difference.UNKNOWN:
            return await self._remove(watched, deviation.subject)
        headers = {_EXPECTED_SEQ: str(deviation.found_seq)}
        value = values.get(deviation.subject, b"")
        if deviation.kind is Difference.RETURNED:
            headers, value = headers | {KV_OP: KV_PURGE, _ROLLUP: MSG_ROLLUP_SUBJECT}, b""
        elif watched is FILES:
            headers[_ROLLUP] = MSG_ROLLUP_SUBJECT
        try:
            life_s = await self._life_s(watched, deviation.subject, value)
            with translated_errors(watched.name):
                await self._nats.js.publish(deviation.subject, value, headers=headers, msg_ttl=life_s)
        except APIError:  # not what it was when it was compared
            return False
        return True

    async def _life_s(self, watched: Store, subject: str, value: bytes) -> float | None:
        """How long an entry that is put back is kept: the source of a run that is in no thread for as long as the log of a run."""
        noted = noted_source(subject, value) if watched is SOURCES else None
        if noted is None or noted.thread:
            return None
        try:
            with translated_errors(RUNS.stream):
                max_age_s = (await self._nats.js.stream_info(RUNS.stream)).config.max_age
        except NotFoundError:
            return None
        return max_age_s + DAY_S if max_age_s else None

    async def _kept_runs(self, sources: StreamComparison) -> set[str]:
        """Keys of the runs in missing entries, as source or as user of one, whose record is there and says that their text is."""
        asked: set[str] = set()
        for deviation in sources.deviations:
            if noted := noted_source(deviation.subject, sources.known_values.get(deviation.subject, b"")):
                asked |= {noted.run, noted.source} if noted.kind == "run" else {noted.run}
        kept = set()
        for key in asked:
            record = await read_entry(self._nats, RECORDS, RECORDS.prefix + key)
            if record is not None and says_text_is_kept(record):
                kept.add(key)
        return kept

    async def _open_runs(self, markers: StreamComparison) -> set[str]:
        """Keys of the runs in missing entries whose record is there and says that they have not ended."""
        keys = [each.subject.removeprefix(MARKERS.prefix) for each in markers.deviations if each.found is None]
        records = {key: await read_entry(self._nats, RECORDS, RECORDS.prefix + key) for key in keys}
        return {key for key, record in records.items() if record is not None and marker_for(record) is not None}

    async def _remove(self, watched: Store, subject: str) -> bool:
        """Whether it is gone. By purging, since what torn bytes made of a subject cannot be published to; where the server's own
        index does not know the subject, that does nothing, and readers of the record have to pass over it."""
        with translated_errors(watched.name):
            await self._nats.js.purge_stream(watched.stream, subject=subject)
        return subject not in await read_entries(self._nats, watched)

    async def settle(self, comparison: Comparison, mended: Set[str]) -> None:
        """From now on what the store holds is what is known. What the findings are of is forgotten, so they must be kept first."""
        for stream in comparison.streams:
            known = await asyncio.to_thread(self._ledger.entries, stream.watched.stream)
            there = [entry for subject, entry in stream.found.items() if subject not in mended]
            forgotten = known.keys() - {entry.subject for entry in there}
            await self._record(stream.watched, there, StreamTotals(0, stream.last_seq, 0), forgotten=list(forgotten))
        await self.queues.settle()
        await self.sync()

    async def _compare(self, watched: Store, known: StreamTotals | None) -> StreamComparison:
        entries = await asyncio.to_thread(self._ledger.entries, watched.stream) if known else {}
        now = await read_totals(self._nats, watched.stream)
        found = await read_entries(self._nats, watched) if now else {}
        deviations = tuple(compare(entries, found, known.last_seq)) if known else ()
        deviating = [deviation.subject for deviation in deviations]
        values = await asyncio.to_thread(self._ledger.values, watched.stream, deviating)
        after = await read_totals(self._nats, watched.stream) or _NOTHING
        return StreamComparison(
            watched, deviations, values, found, now.last_seq if now else 0, first_seq=after.first_seq
        )

    async def _record(
        self, watched: Store, entries: list[Entry], now: StreamTotals, *, forgotten: Sequence[str] = ()
    ) -> None:
        kept = [entry if _keeps_value(watched, entry) else replace(entry, value=None) for entry in entries]
        await asyncio.to_thread(self._ledger.record, watched.stream, kept, now, forgotten)

    async def _fileless(self, documents: StreamComparison, whole: set[str]) -> list[str]:
        """Documents whose file is not there. Files and each document are looked at again: it may have come, or have been replaced,
        while they were read."""
        suspects = _without_file(documents.found, documents.found, whole)
        if suspects and await read_totals(self._nats, FILES.stream):
            files = await read_entries(self._nats, FILES)
            now_whole = await find_whole_files(
                self._nats, {subject: entry.value or b"" for subject, entry in files.items() if not entry.gone}
            )
            suspects = _without_file(documents.found, suspects, now_whole)
        return [
            subject
            for subject in suspects
            if await read_entry(self._nats, DOCUMENTS, subject) == documents.found[subject].value
        ]


def _without_file(found: Mapping[str, Entry], subjects: Iterable[str], whole: set[str]) -> list[str]:
    """Those of the documents that have no whole file."""
    return [
        subject for subject in subjects if not found[subject].gone and _needs_file(found[subject].value or b"", whole)
    ]


def _keeps_value(watched: Store, entry: Entry) -> bool:
    return watched.keeps_values and not entry.gone and len(entry.value or b"") <= VALUE_BYTES_MAX


def _needs_file(document: bytes, whole: set[str]) -> bool:
    fields = fields_of(document)
    return bool(fields) and fields.get("status") != "deleted" and file_name(fields) not in whole
