"""What was found, in words for an operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from datetime import datetime

from kit.jetstream.condition import Finding
from ops.watch.compare import Comparison, Deviation, Difference, StreamComparison
from ops.watch.records import fields_of
from services.ingest.state import DOCUMENTS, FILES, NAMES

EXAMPLES_MAX = 20
EXAMPLES_AT_START = 3
"""`groundwork doctor` shows the others."""
LOSSES, FILELESS = "ledger", "files"
"""Sources in the store's condition: what happened, which stays until a person has seen it, and how it is, which may mend."""
MENDED = "were put right"
MENDABLE = "can be put right, which the next start does"

_SAID = {
    Difference.MISSING: "are gone",
    Difference.OUTDATED: "are there as they were before their last change",
    Difference.ALTERED: "have other bytes than were written",
    Difference.RETURNED: "had been deleted and are there again",
    Difference.UNKNOWN: "were never written as they are",
}


def losses(comparison: Comparison, mended: Set[str], at: datetime, done: str = MENDED) -> list[Finding]:
    """One for each kind of deviation in each stream. `done` says what `mended` means."""
    found = [finding for stream in comparison.streams for finding in _of_stream(stream, mended, at, done)]
    for store, count in comparison.messages_missing.items():
        if count:
            detail = f"{count} of the last messages of {store.stream} are gone"
            found.append(Finding("messages_missing", store.stream, count, 0, detail, store.advice, (), at.isoformat()))
    return [*found, *_of_queues(comparison, mended, at, done)]


def _of_queues(comparison: Comparison, mended: Set[str], at: datetime, done: str) -> list[Finding]:
    found = []
    for each in comparison.queues:
        if not (each.lost and each.is_certain):
            continue
        name, count, repaired = each.queue.stream, len(each.lost), len(each.lost.keys() & mended)
        detail = f"{count} deletions that waited in {name} are gone; {repaired} {done}"
        advice = "" if repaired == count else each.queue.advice
        examples = tuple(sorted(each.lost))[:EXAMPLES_MAX]
        found.append(Finding("jobs_missing", name, count, repaired, detail, advice, examples, at.isoformat()))
    return found


def fileless(comparison: Comparison, at: datetime) -> list[Finding]:
    """Documents that are there and whose file is not: none or one finding."""
    return [_fileless(comparison, at)] if comparison.fileless else []


def _of_stream(stream: StreamComparison, mended: Set[str], at: datetime, done: str) -> list[Finding]:
    kinds = Counter(deviation.kind for deviation in stream.deviations)
    return [_of_kind(stream, kind, mended, at, done) for kind in kinds]


def _of_kind(stream: StreamComparison, kind: Difference, mended: Set[str], at: datetime, done: str) -> Finding:
    deviations = [deviation for deviation in stream.deviations if deviation.kind is kind]
    left = [deviation for deviation in deviations if deviation.subject not in mended]
    name, repaired = stream.watched.name, len(deviations) - len(left)
    detail = f"{len(deviations)} entries of {name} ({stream.watched.holds}) {_SAID[kind]}; {repaired} {done}"
    return Finding(
        f"entries_{kind.value}",
        name,
        len(deviations),
        repaired,
        detail,
        stream.watched.advice if left else "",
        tuple(_label(stream, deviation) for deviation in (left or deviations)[:EXAMPLES_MAX]),
        at.isoformat(),
    )


def _fileless(comparison: Comparison, at: datetime) -> Finding:
    documents = comparison.of(DOCUMENTS).found
    labels = [document_label(fields_of(documents[subject].value or b""), subject) for subject in comparison.fileless]
    return Finding(
        "files_missing",
        FILES.name,
        len(labels),
        0,
        f"The files of {len(labels)} documents are gone or incomplete: these cannot be downloaded or indexed again",
        FILES.advice,
        tuple(labels[:EXAMPLES_MAX]),
        at.isoformat(),
    )


def _label(stream: StreamComparison, deviation: Deviation) -> str:
    key = deviation.subject.removeprefix(stream.watched.prefix)
    value = stream.known_values.get(deviation.subject) or (deviation.found.value if deviation.found else None) or b""
    if stream.watched is DOCUMENTS:
        return document_label(fields_of(value), key)
    if stream.watched is NAMES:
        return f"of document {value.decode('utf-8', 'replace')}"
    if stream.watched is FILES:
        return str(fields_of(value).get("name") or key)
    return key


def document_label(fields: Mapping[str, object], otherwise: str) -> str:
    """How an operator knows a document, by its record."""
    return f"{fields['collection_id']}/{fields['name']} ({fields['document_id']})" if fields.get("name") else otherwise


def lines(found: Sequence[Finding], examples_shown: int = EXAMPLES_MAX) -> list[str]:
    """For the terminal: what, what to do, and some examples."""
    shown = []
    for finding in found:
        shown.append(f"  DAMAGE  {finding.detail}.{f' {finding.advice}.' if finding.advice else ''}")
        examples = finding.examples[:examples_shown]
        shown += [f"          {example}" for example in examples]
        if examples and finding.count > len(examples):
            shown.append(f"          … and {finding.count - len(examples)} more")
    return shown
