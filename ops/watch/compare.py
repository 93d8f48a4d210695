"""What the message store holds, compared with what the ledger knows: a pure function over both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum

from kit.state import Store
from ops.watch.ledger import Entry, StreamTotals
from ops.watch.queues import QueueComparison
from ops.watch.records import fields_of, file_name, file_names, is_tombstone, noted_source
from services.ingest.state import DOCUMENTS, FILES, NAMES
from services.memory.state import MESSAGES, THREADS
from services.orchestrator.state import FORGOTTEN, MARKERS, SOURCES
from services.retriever.state import ACTIVE_REVISIONS


class Difference(StrEnum):
    """How an entry differs."""

    MISSING = "missing"  # known, and not there, not even as a deletion
    OUTDATED = "outdated"  # there as it was before a later write that is known
    ALTERED = "altered"  # the same write, other bytes
    RETURNED = "returned"  # deleted, and there again as it was before
    UNKNOWN = "unknown"  # it was never written: torn bytes, or deleted so long ago that the deletion is forgotten


@dataclass(frozen=True)
class Deviation:
    """One entry that is not as it was."""

    kind: Difference
    subject: str
    known: Entry | None
    found: Entry | None

    @property
    def found_seq(self) -> int:
        """For compare-and-set: what a repair expects to replace."""
        return self.found.seq if self.found else 0


def compare(known: Mapping[str, Entry], found: Mapping[str, Entry], known_last_seq: int) -> list[Deviation]:
    """Deviations by subject. `known` must have been read before `found`: what was written in between is newer, and no deviation.

    The server keeps the mark of a deletion for a day, so an entry that is missing without one was lost.
    """
    deviations = [
        Deviation(kind, subject, entry, found.get(subject))
        for subject, entry in known.items()
        if (kind := _deviation(entry, found.get(subject)))
    ]
    deviations += [
        Deviation(Difference.UNKNOWN, subject, None, entry)
        for subject, entry in found.items()
        if subject not in known and entry.seq <= known_last_seq and not entry.gone
    ]
    return sorted(deviations, key=lambda deviation: deviation.subject)


def messages_missing(known: StreamTotals, now: StreamTotals) -> int:
    """How many messages of a stream without a list of entries are gone, as far as counts tell."""
    from_end = max(0, known.last_seq - now.last_seq)
    if not known.final:
        return from_end
    expired_at_most = max(0, now.first_seq - known.first_seq)
    return max(from_end, known.messages - expired_at_most - now.messages)


def _deviation(known: Entry, found: Entry | None) -> Difference | None:
    if found is None:
        return None if known.gone else Difference.MISSING
    if found.seq > known.seq:
        return None
    if found.seq == known.seq:
        return None if found.digest == known.digest and found.gone == known.gone else Difference.ALTERED
    if known.gone:
        return None if found.gone else Difference.RETURNED
    return Difference.OUTDATED


@dataclass(frozen=True)
class StreamComparison:
    """One store whose every entry is known."""

    watched: Store
    deviations: tuple[Deviation, ...]
    known_values: Mapping[str, bytes]
    """Of deviating subjects, where the ledger has them."""
    found: Mapping[str, Entry]
    """By subject, with data."""
    last_seq: int
    """At least this far the stream had been written when it was read."""
    first_seq: int = 0
    """What was written before it had expired or gone when the stream had been read."""


@dataclass(frozen=True)
class Comparison:
    """The whole store."""

    streams: tuple[StreamComparison, ...]
    whole_files: frozenset[str]
    """Names of files whose pieces are all there, also where the description is missing but known."""
    messages_missing: Mapping[Store, int]
    """Of stores whose totals alone are known."""
    fileless: tuple[str, ...] = ()
    """Subjects of documents that are there, and whose file is not."""
    queues: tuple[QueueComparison, ...] = ()

    def of(self, watched: Store) -> StreamComparison:
        """That of one stream."""
        return _comparison_of(self.streams, watched)

    def after(self, mended: Set[str]) -> Comparison:
        """As it is once these were mended: a record that is put back refers to its file, which is there; the older one, which it
        replaces, may have referred to another that is not."""
        return replace(self, fileless=tuple(subject for subject in self.fileless if subject not in mended))


Repair = tuple[Store, Deviation]


def only_losses(
    streams: Sequence[StreamComparison], whole_files: Set[str], kept_runs: Set[str], open_runs: Set[str]
) -> list[StreamComparison]:
    """Without what is missing because it was deleted with its owner: a name, a pointer, a message, a run's source, a run's marker
    and a file leave no mark of their own, or none that lasts. `kept_runs`: keys of the runs whose record is there and says that
    their text is; `open_runs`: of those whose record says that they have not ended."""
    needed = _needed_files(_comparison_of(streams, DOCUMENTS))
    return [
        replace(
            stream,
            deviations=tuple(
                each
                for each in stream.deviations
                if _is_loss(stream, each, streams, whole_files, needed, kept_runs, open_runs)
            ),
        )
        for stream in streams
    ]


def mendable(comparison: Comparison, *, quiet: bool) -> list[Repair]:
    """What can be put right. A document is put back when its file is there, for then it can be made again; what was deleted
    stays deleted. `quiet`: no service runs, so an older entry is not somebody's work of this moment, and may be replaced."""
    return [
        (stream.watched, deviation)
        for stream in comparison.streams
        for deviation in stream.deviations
        if (quiet or deviation.found is None) and _can_be_mended(stream, deviation, comparison.whole_files)
    ]


def _is_loss(
    stream: StreamComparison,
    deviation: Deviation,
    streams: Sequence[StreamComparison],
    whole_files: Set[str],
    needed_files: Set[str],
    kept_runs: Set[str],
    open_runs: Set[str],
) -> bool:
    if deviation.kind is not Difference.MISSING:
        return True
    key = deviation.subject.removeprefix(stream.watched.prefix)
    value = stream.known_values.get(deviation.subject, b"")
    if stream.watched is FILES:
        return str(fields_of(value).get("name")) in needed_files
    if stream.watched is FORGOTTEN:
        return deviation.known is not None and deviation.known.seq >= stream.first_seq  # the others have expired
    if stream.watched in (MARKERS, SOURCES):
        is_source = stream.watched is SOURCES
        return (
            _is_source_lost(deviation.subject, value, streams, whole_files, kept_runs)
            if is_source
            else key in open_runs
        )
    if stream.watched is MESSAGES:
        return _is_there(_comparison_of(streams, THREADS), key.rpartition(".")[0].rpartition(".")[0])
    if stream.watched is NAMES:
        key = f"{key.partition('.')[0]}.{value.decode('utf-8', 'replace')}"
    is_of_document = stream.watched in (NAMES, ACTIVE_REVISIONS)
    return not is_tombstone(value) and (
        not is_of_document or _has_document(_comparison_of(streams, DOCUMENTS), key, whole_files)
    )


def _has_document(documents: StreamComparison, key: str, whole_files: Set[str]) -> bool:
    """Whether it is there, or can be put back."""
    return _is_there(documents, key) or _has_file(
        documents.known_values.get(documents.watched.prefix + key), whole_files
    )


def _is_source_lost(
    subject: str, value: bytes, streams: Sequence[StreamComparison], whole_files: Set[str], kept_runs: Set[str]
) -> bool:
    """An entry goes with its source, and expires with its run: it was lost if both are there."""
    noted = noted_source(subject, value)
    if noted is None:
        return False
    is_thread_there = bool(noted.thread) and _is_there(_comparison_of(streams, THREADS), noted.thread)
    if noted.kind == "thread":
        return is_thread_there
    if noted.kind == "run":
        is_source_there = noted.source in kept_runs
    else:
        is_source_there = _lives(_comparison_of(streams, DOCUMENTS), noted.source, whole_files)
    return is_source_there and (noted.run in kept_runs or is_thread_there)


def _can_be_mended(stream: StreamComparison, deviation: Deviation, whole_files: Set[str]) -> bool:
    if deviation.kind in (Difference.RETURNED, Difference.UNKNOWN):
        return stream.watched is not FILES  # a file without a record is removed by ingestion's upkeep
    value = stream.known_values.get(deviation.subject)
    if stream.watched is DOCUMENTS and value is not None:
        return is_tombstone(value) or _has_file(value, whole_files)
    if stream.watched is FILES and value is not None:
        return str(fields_of(value).get("name")) in whole_files
    return value is not None


def _needed_files(documents: StreamComparison) -> set[str]:
    """Names of the files of all documents that are there, or are known and missing or older than known."""
    records = [entry.value for entry in documents.found.values() if entry.value and not entry.gone]
    records += [
        value
        for each in documents.deviations
        if each.known and not each.known.gone and (value := documents.known_values.get(each.subject))
    ]
    return {name for record in records if not is_tombstone(record) for name in file_names(record)}


def _is_there(stream: StreamComparison, key: str) -> bool:
    entry = stream.found.get(stream.watched.prefix + key)
    return entry is not None and not entry.gone


def _lives(documents: StreamComparison, key: str, whole_files: Set[str]) -> bool:
    """Whether a document that was not deleted is there, or can be put back."""
    subject = documents.watched.prefix + key
    entry = documents.found.get(subject)
    record = documents.known_values.get(subject) if entry is None else entry.value
    if record is None or is_tombstone(record):
        return False
    return _has_file(record, whole_files) if entry is None else not entry.gone


def _has_file(document: bytes | None, whole_files: Set[str]) -> bool:
    return document is not None and file_name(fields_of(document)) in whole_files


def _comparison_of(streams: Sequence[StreamComparison], watched: Store) -> StreamComparison:
    return next(each for each in streams if each.watched is watched)
