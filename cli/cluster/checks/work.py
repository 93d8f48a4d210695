"""Work that was given up, and records that disagree."""

from __future__ import annotations

from collections.abc import Iterable

from cli.cluster.checks.finding import Finding, count
from cli.cluster.snapshot import Snapshot

_HEALED = {"not_searchable"}
"""Kinds of disagreement that ingestion puts right by itself."""


def dead_letters(snapshot: Snapshot) -> Iterable[Finding]:
    """Jobs that were given up and wait for a person."""
    number = round(highest(snapshot, "groundwork_ingest_dead_letters"))
    if number:
        sentence = (
            f"{count(number, 'document')} could not be ingested and {'waits' if number == 1 else 'wait'} for a person"
        )
        cure = (
            "groundwork jobs dead says why; groundwork jobs requeue --all queues them again once the cause is removed"
        )
        yield Finding("DEAD_LETTERS", "ingest-worker", sentence, cure)


def damaged_records(snapshot: Snapshot) -> Iterable[Finding]:
    """What ingestion found to disagree, or could not read."""
    for name, what in (
        ("groundwork_ingest_disagreements", "disagree"),
        ("groundwork_ingest_unreadable_records", "cannot be read"),
    ):
        for kind, number in sorted(_by_kind(snapshot, name).items()):
            if number and kind not in _HEALED:
                sentence = f"{number:.0f} stored records or files {what} ({kind})"
                yield Finding(
                    "STORED_DATA_DAMAGED", kind, sentence, "groundwork doctor says what to do about each kind"
                )


def highest(snapshot: Snapshot, name: str) -> float:
    """The highest value among pods: what the leading worker tells is 0 elsewhere."""
    values = [ops.metrics.value(name) or 0.0 for ops in snapshot.ops.values()]
    return max(values, default=0.0)


def summed(snapshot: Snapshot, name: str, **labels: str) -> float:
    """Over all pods: what each tells of itself."""
    return sum(ops.metrics.value(name, **labels) or 0.0 for ops in snapshot.ops.values())


def _by_kind(snapshot: Snapshot, name: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for ops in snapshot.ops.values():
        for sample in ops.metrics.of(name):
            kind = sample.labels.get("kind", "")
            found[kind] = max(found.get(kind, 0.0), sample.value)
    return found
