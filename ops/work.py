"""How the work stands, for `groundwork doctor`: what waits, what is refused, what was given up, what is not searchable. The message
store knows it of all tenants, and whether or not the services run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kit.access.tokens import TokenVerifier
from kit.errors import GroundworkError
from kit.jetstream import Nats
from kit.jetstream.queues.turns import bulk_lane
from kit.jetstream.queues.work_queue import verified_principal
from kit.state import Queue, Store
from ops.state import QUEUES
from ops.watch.findings import document_label
from ops.watch.queues import read_job, read_waiting_subjects
from ops.watch.records import fields_of, read_entries, read_entry, read_totals
from services.ingest.state import DEAD_LETTERS, DOCUMENTS, JOBS
from services.retriever.state import ACTIVE_REVISIONS

VERIFIED_MAX = 1000
"""Jobs of a queue whose tokens are verified: each is read by itself."""
EXAMPLES_MAX = 3
_DROPPED = "they are dropped, and queued again within three minutes of running"
_KEPT = (
    "no service does them. Delete again what they were to delete, or have the public half of the key known again "
    "(docs/operations/keys.md)"
)
_Fields = Mapping[str, Any]


@dataclass(frozen=True)
class WorkReport:
    """What an operator should know besides damage."""

    lines: tuple[str, ...]
    is_wrong: bool
    """Whether deletions wait that no service will do."""


@dataclass(frozen=True)
class _Queue:
    config: Queue
    count: int
    subjects: frozenset[str]
    refused: int
    verified: int


async def observe_work(nats: Nats, verifier: TokenVerifier | None) -> WorkReport:
    """Reads queues and records. Without a verifier it is not known which jobs are refused."""
    queues = [await _queue(nats, config, verifier) for config in QUEUES]
    queued = next(queue.subjects for queue in queues if queue.config is JOBS)
    letters = await _records(nats, DEAD_LETTERS)
    documents = await _records(nats, DOCUMENTS)
    pointers = await _records(nats, ACTIVE_REVISIONS)
    jobless = [each for each in documents.values() if _lacks_job(each, queued)]
    hidden = [
        document
        for key, document in documents.items()
        if _is_hidden(document, pointers.get(key, {})) and await _is_hidden_now(nats, key)
    ]
    lines = [
        "Jobs of all tenants:",
        *map(_line, queues),
        _given_up([each for each in letters.values() if not each.get("requeued_at")]),
        _statuses(documents.values()),
        *_listed(jobless, "on their way without a job; ingestion gives them a new one within a minute of running"),
        *_listed(hidden, "ready and not searchable; ingestion makes them again, beginning a minute after its start"),
    ]
    return WorkReport(tuple(lines), any(queue.refused and not queue.config.refills_itself for queue in queues))


async def _queue(nats: Nats, config: Queue, verifier: TokenVerifier | None) -> _Queue:
    now = await read_totals(nats, config.stream)
    subjects = await read_waiting_subjects(nats, config, now) if now else set()
    looked_at = sorted(subjects)[:VERIFIED_MAX] if verifier else []
    refused = [subject for subject in looked_at if verifier and await _is_refused(nats, config, subject, verifier)]
    return _Queue(config, now.messages if now else 0, frozenset(subjects), len(refused), len(looked_at))


async def _is_refused(nats: Nats, config: Queue, subject: str, verifier: TokenVerifier) -> bool:
    job = await read_job(nats, config, subject)
    if job is None:
        return False
    try:
        verified_principal(verifier, config, subject, job.headers, job.data)
    except GroundworkError:
        return True
    return False


def _line(queue: _Queue) -> str:
    line = f"  {queue.config.stream:<8} {queue.count} waiting or in hand ({queue.config.holds})"
    if queue.refused:
        then = _DROPPED if queue.config.refills_itself else _KEPT
        return f"{line}; {queue.refused} REFUSED, since no known key is good for them: {then}"
    if queue.verified < len(queue.subjects):
        return f"{line}; whether {len(queue.subjects) - queue.verified} of them are refused was not looked at"
    return line


def _given_up(letters: Sequence[_Fields]) -> str:
    cure = " (groundwork jobs dead lists them, groundwork jobs requeue queues them again)" if letters else ""
    return f"  {'given up':<8} {len(letters)}{cure}"


def _statuses(documents: Iterable[_Fields]) -> str:
    counts = Counter(str(each.get("status")) for each in documents if each.get("status") != "deleted")
    return f"Documents: {', '.join(f'{count} {status}' for status, count in sorted(counts.items())) or 'none'}"


def _listed(documents: Sequence[_Fields], what: str) -> list[str]:
    if not documents:
        return []
    examples = [document_label(document, "?") for document in documents[:EXAMPLES_MAX]]
    rest = [f"{len(documents) - EXAMPLES_MAX} more"] if len(documents) > EXAMPLES_MAX else []
    return [f"  {len(documents)} {what}: {', '.join([*examples, *rest])}"]


def _lacks_job(document: _Fields, subjects: frozenset[str]) -> bool:
    if not document.get("pending") or document.get("status") == "deleted":
        return False
    revision_id = document["pending"].get("revision_id")
    tenant = str(document.get("tenant_id"))
    waiting = {
        f"{JOBS.prefix}{lane}.{document.get('document_id')}.{revision_id}" for lane in (tenant, bulk_lane(tenant))
    }
    return not waiting & subjects


def _is_hidden(document: _Fields, pointer: _Fields) -> bool:
    """Whether searches do not show the revision that the record says is searchable."""
    if document.get("status") != "ready" or document.get("pending") or not document.get("active"):
        return False
    return bool(pointer.get("deleted")) or pointer.get("revision_id") != document["active"].get("revision_id")


async def _is_hidden_now(nats: Nats, key: str) -> bool:
    """Record and pointer were read one after the other, and change meanwhile."""
    document, pointer = [
        await read_entry(nats, watched, watched.prefix + key) for watched in (DOCUMENTS, ACTIVE_REVISIONS)
    ]
    return _is_hidden(fields_of(document or b""), fields_of(pointer or b""))


async def _records(nats: Nats, watched: Store) -> dict[str, _Fields]:
    """By key; none of a bucket that is not there."""
    entries = await read_entries(nats, watched) if await read_totals(nats, watched.stream) else {}
    living = {subject: entry.value or b"" for subject, entry in entries.items() if not entry.gone}
    return {subject.removeprefix(watched.prefix): fields_of(value) for subject, value in living.items()}
