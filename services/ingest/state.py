"""What ingestion keeps in the message store. Its two processes, the API and the worker, have a user of NATS each."""

from kit.shared_state import COLLECTIONS, DOCUMENT_ACCESS, STORE_CONDITION
from kit.state import DAY_S, Bucket, ObjectBucket, Queue, Watch

_BOTH = ("ingest", "ingest-worker")

DEAD_LETTERS = Bucket(
    "DEAD_LETTERS",
    holds="jobs that were given up, with the reason",
    written_by=_BOTH,
    watch=Watch.VALUES,
    if_lost="the documents stay failed, and are not listed as given up",
)
DOCUMENTS = Bucket(
    "DOCUMENTS",
    holds="documents: state, metadata, report",
    written_by=_BOTH,
    needed_by=("INGEST_KEYS", "THREAD_MESSAGES"),
    watch=Watch.VALUES,
    if_lost="a document that has its file can be put back; others are lost",
    advice="Restore a backup, or upload these documents again",
)
NAMES = Bucket(
    "DOCUMENT_NAMES",
    holds="which document has a name in a collection",
    written_by=_BOTH,
    needed_by=("DOCUMENTS",),
    watch=Watch.VALUES,
    if_lost="names are given back from the documents' records",
)
LEASES = Bucket(
    "INGEST_LEASES",
    holds="which process works on a document",
    written_by=_BOTH,
    kept_for="`GROUNDWORK_INGEST_LEASE_TTL_S`",
    if_lost="leases are taken again",
    not_ours="a random word that only its writer compares",
)
KEYS = Bucket(
    "INGEST_KEYS",
    holds="idempotency keys of collections, uploads and indexing anew",
    written_by=("ingest",),
    kept_for_s=DAY_S,  # a client that has not had its answer in a day has given up
    if_lost="a request that is sent again is carried out again",
)
FILES = ObjectBucket(
    "FILES",
    holds="uploaded files, by tenant and SHA-256",
    written_by=_BOTH,
    needed_by=("DOCUMENTS",),
    watch=Watch.VALUES,
    if_lost="the documents cannot be downloaded or indexed again: upload them again",
    advice="Restore a backup, or upload these documents again",
    not_ours="the layout of NATS object stores, which is not ours to change",
)
SOURCES = Bucket(
    "SOURCES",
    holds="sources: where collections are filled from, and how their last syncs went",
    written_by=("ingest",),
    needed_by=("DOCUMENTS", "INGEST_KEYS"),
    watch=Watch.VALUES,
    if_lost="nothing is taken from these sources any more; their documents stay",
    advice="Restore a backup, or make these sources again",
)
JOBS = Queue(
    "INGEST",
    "ingest",
    holds="documents to read",
    written_by=("ingest-worker",),
    filled_by=("ingest",),
    refills_itself=True,
    kept_for="until it is done",
    if_lost="jobs are queued again from the documents' records",
)
STATE = (
    COLLECTIONS,
    DOCUMENT_ACCESS,
    DEAD_LETTERS,
    DOCUMENTS,
    NAMES,
    LEASES,
    STORE_CONDITION,
    KEYS,
    FILES,
    SOURCES,
    JOBS,
)
