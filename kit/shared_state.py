"""Stores that several services open through an adapter in kit. Each is part of the `state.py` of the service that owns it."""

from kit.state import DAY_S, Bucket, Queue, Stream, Watch

API_KEYS = Bucket(
    "API_KEYS",
    holds="who may come in: hashes of API keys, revoked ones too",
    written_by=("gateway",),
    watch=Watch.VALUES,  # only a hash of a key is there; a revocation that was lost would open the door again
    if_lost="callers have no key; a revoked key may be good again",
    advice="Look at the keys (groundwork keys list): make those that are gone anew, and revoke again those that are active and "
    "should not be",
)
API_KEY_USES = Bucket(
    "API_KEY_USES",
    holds="when each API key was last used",
    written_by=("gateway",),
    kept_for_s=366 * DAY_S,
    if_lost="last uses are not shown until the next use",
)
COLLECTIONS = Bucket(
    "COLLECTIONS",
    holds="collections: owner, visibility, members, and whether local models alone may be asked",
    written_by=("ingest", "ingest-worker"),
    read_by=("orchestrator", "retriever"),
    needed_by=("DOCUMENTS", "INGEST_KEYS"),
    watch=Watch.VALUES,
    if_lost="only callers who see all collections find what is in it",
)
DOCUMENT_ACCESS = Bucket(
    "DOCUMENT_ACCESS",
    holds="access lists of documents: which subjects and groups may read them",
    written_by=("ingest", "ingest-worker"),
    read_by=("retriever",),
    needed_by=("DOCUMENTS",),
    watch=Watch.VALUES,  # a list that was lost would open its document to all who read the collection
    if_lost="the documents are read by all who may read their collection",
    advice="Set the access of these documents again, or restore a backup",
)
STORE_CONDITION = Bucket(
    "STORE_CONDITION",
    holds="what was found damaged, until a person has accepted it",
    written_by=("ingest", "ingest-worker"),
    if_lost="losses of the past are not shown; what is wrong still is found again",
)
MODEL_SETTINGS = Bucket(
    "MODEL_SETTINGS",
    holds="which model was set for an operation",
    written_by=("orchestrator",),
    if_lost="operations use the models of the settings",
)
LIMIT_RULES = Bucket(
    "LIMIT_RULES",
    holds="how much each tenant, group, user and API key may use",
    written_by=("orchestrator",),
    read_by=("gateway", "ingest"),
    watch=Watch.VALUES,
    if_lost="nothing limits what is used",
    advice="Set the limits again (groundwork limits)",
)
LIMIT_RATES = Stream(
    "LIMIT_RATES",
    "rates",
    holds="how much of each limit of a minute is used, in memory",
    written_by=("orchestrator", "gateway", "ingest", "tools"),
    kept_for_s=180.0,
    if_lost="counting begins anew in this minute",
    not_ours="the server adds them up",
)
LIMIT_SECONDS = Stream(
    "LIMIT_SECONDS",
    "seconds",
    holds="how much of each limit of a second is used, in memory",
    written_by=("orchestrator", "gateway", "ingest"),
    kept_for_s=10.0,  # a window for each caller and second would soon fill the memory
    if_lost="counting begins anew in this second",
    not_ours="the server adds them up",
)
LIMIT_COUNTS = Stream(
    "LIMIT_COUNTS",
    "limits",
    holds="how much of each limit is used",
    written_by=("orchestrator", "gateway", "ingest"),
    kept_for_s=32 * DAY_S,  # a month may be counted
    if_lost="counting begins anew in this hour, day and month",
    not_ours="the server adds them up",
)
LIMIT_CREDITS = Stream(
    "LIMIT_CREDITS",
    "credits",
    holds="how many of the credits that were granted are spent",
    written_by=("orchestrator",),
    if_lost="all credits that were granted can be spent again",
    advice="Restore a backup, or grant less (groundwork limits)",
    not_ours="the server adds them up",
)
FORGET = Queue(
    "FORGET",
    "forget",
    holds="deletions of what quotes a document, a thread or a run",
    written_by=("orchestrator",),
    filled_by=("memory", "ingest", "ingest-worker"),
    has_kinds=True,
    kept_for="until it is done",
    watch=Watch.VALUES,
    if_lost="what quotes a deleted source stays readable: delete the source again",
    advice="Delete again what you deleted in the minutes before",
)
