"""What the memory service keeps in the message store."""

import hashlib

from kit.state import DAY_S, Bucket, Queue, Watch

_WRITERS = ("memory",)

KEYS = Bucket(
    "MEMORY_KEYS",
    holds="idempotency keys of threads",
    written_by=_WRITERS,
    kept_for_s=DAY_S,  # a client that has not had its answer in a day has given up
    if_lost="a request that is sent again makes a second thread",
)
THREADS = Bucket(
    "THREADS",
    holds="threads: title and owner",
    written_by=_WRITERS,
    is_erased=True,
    needed_by=("MEMORY_KEYS", "RUNS"),
    watch=Watch.ENTRIES,
    if_lost="the threads are lost",
    advice="Restore a backup; else these threads are lost",
)
MESSAGES = Bucket(
    "THREAD_MESSAGES",
    holds="messages of threads",
    written_by=_WRITERS,
    is_erased=True,
    needed_by=("THREADS",),
    watch=Watch.ENTRIES,
    if_lost="the messages are lost",
    advice="Restore a backup; else these messages are lost",
)
DELETIONS = Queue(
    "MEMORY",
    "memory",
    holds="deletions of threads",
    written_by=_WRITERS,
    kept_for="until it is done",
    watch=Watch.VALUES,
    if_lost="messages of a deleted thread stay stored: delete the thread again",
    advice="Delete again what you deleted in the minutes before",
)


FACTS = Bucket(
    "MEMORY_FACTS",
    holds="facts that people have stated about themselves",
    written_by=_WRITERS,
    is_erased=True,
    needed_by=("MEMORY_PROFILES",),
    watch=Watch.ENTRIES,
    if_lost="the facts are lost, and are learnt again when they are said again",
)
PROFILES = Bucket(
    "MEMORY_PROFILES",
    holds="the summary of what is known of each person, whether anything is learnt, and what is being learnt",
    written_by=_WRITERS,
    is_erased=True,
    watch=Watch.ENTRIES,
    if_lost="summaries are written again; who had paused learning must do so again",
)
TURNS = Bucket(
    "MEMORY_TURNS",
    holds="which turns were learnt from, without what was said",
    written_by=_WRITERS,
    kept_for_s=30 * DAY_S,  # longer than a turn waits
    if_lost="a turn that is delivered again is compared with what is known again",
    not_ours="the digit 1",
)


def owner_key(tenant_id: str, subject: str) -> str:
    """The beginning of the keys of what is `subject`'s, whose name may hold what a key may not: so a digest of it stands there."""
    return f"{tenant_id}.{hashlib.sha256(subject.encode()).hexdigest()[:32]}"


def thread_key(tenant_id: str, subject: str, thread_id: str) -> str:
    """The key of a thread of `subject`."""
    return f"{owner_key(tenant_id, subject)}.{thread_id}"


STATE = (KEYS, THREADS, MESSAGES, FACTS, PROFILES, TURNS, DELETIONS)
