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
    needed_by=("MEMORY_KEYS", "RUNS"),
    watch=Watch.ENTRIES,
    if_lost="the threads are lost",
    advice="Restore a backup; else these threads are lost",
)
MESSAGES = Bucket(
    "THREAD_MESSAGES",
    holds="messages of threads",
    written_by=_WRITERS,
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


def thread_key(tenant_id: str, subject: str, thread_id: str) -> str:
    """The key of a thread of `subject`. Its owner's name may hold what a key may not, so a digest of it stands there."""
    owner = hashlib.sha256(subject.encode()).hexdigest()[:32]
    return f"{tenant_id}.{owner}.{thread_id}"


STATE = (KEYS, THREADS, MESSAGES, DELETIONS)
