"""The retriever's instruments. Labels are bounded: stages, parts and strategies, never an id."""

from opentelemetry import trace
from prometheus_client import Counter, Gauge, Histogram

from services.retriever.models import SearchResult

_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)

STAGE_SECONDS = Histogram(
    "groundwork_retriever_stage_seconds", "Time of a stage of a search.", ["stage"], buckets=_BUCKETS_S
)
SEARCHES = Counter("groundwork_retriever_searches_total", "Searches answered.", ["strategy"])
CACHED = Counter("groundwork_retriever_cache_total", "Searches by whether the answer was remembered.", ["outcome"])
DEGRADED = Counter("groundwork_retriever_degraded_total", "Searches answered without a part.", ["part"])
INDEXED_CHUNKS = Counter("groundwork_retriever_indexed_chunks_total", "Chunks written to both indexes.")

POINTER_AGE = Gauge(
    "groundwork_retriever_pointer_age_seconds", "Since it was last known that every stored pointer has arrived here."
)
MISSING_REVISIONS = Gauge(
    "groundwork_retriever_missing_revisions", "Visible revisions that an engine lacks.", ["engine"]
)
DAMAGED = Counter("groundwork_retriever_damaged_indexes_total", "Indexes that were damaged and begun anew.", ["engine"])
UNERASED = Gauge(
    "groundwork_retriever_unerased_removals",
    "1 while files of an index hold removed texts that are still to be erased; of documents or of memories.",
    ["engine", "index"],
)
REFILLED = Counter(
    "groundwork_retriever_refilled_revisions_total", "Revisions filled in from the other engine.", ["engine"]
)
EMBEDDING_CHANGES = Gauge(
    "groundwork_retriever_embedding_changes",
    "Collections whose embedding model is being changed, by stage.",
    ["stage"],
)
EMBEDDING_PENDING = Gauge(
    "groundwork_retriever_embedding_pending_chunks",
    "Chunks that are still to be embedded with the models of their collections.",
)
EMBEDDING_COPIED = Counter(
    "groundwork_retriever_embedding_copied_chunks_total", "Chunks embedded with another model of their collection."
)
EMBEDDING_FAILURES = Counter(
    "groundwork_retriever_embedding_failures_total",
    "Steps of a change of the embedding model that failed and are repeated.",
)
ENGINE_INFO = Gauge(
    "groundwork_retriever_engine_info",
    "1; its labels say what keeps vectors (dense) and text (lexical).",
    ["engine", "system"],
)
ENGINE_SECONDS = Histogram(
    "groundwork_retriever_engine_seconds",
    "Seconds of a call of an engine: dense or lexical.",
    ["engine", "operation"],
    buckets=(*_BUCKETS_S, 5, 10, 30),
)
ENGINE_ERRORS = Counter(
    "groundwork_retriever_engine_errors_total", "Calls of an engine that failed.", ["engine", "operation"]
)
ENGINE_UP = Gauge("groundwork_retriever_engine_up", "Whether an engine answers.", ["engine"])
UNREADABLE = Counter(
    "groundwork_retriever_unreadable_total", "Records that could not be decoded and were set aside.", ["kind"]
)


# There from the start, so that the first one is an increase.
for _engine in ("dense", "lexical"):
    DAMAGED.labels(_engine)
for _kind in ("chunk", "pointer", "collection_model"):
    UNREADABLE.labels(_kind)


def observe_search(result: SearchResult) -> None:
    """Counts an answered search, times its stages, and tells the span in hand how it was answered."""
    trace.get_current_span().set_attributes(
        {
            "groundwork.search.strategy": result.plan.strategy.value,
            "groundwork.search.cache": result.cache.value,
            "groundwork.search.hits": len(result.hits),
            "groundwork.search.degraded": tuple(each.part for each in result.degraded),
        }
    )
    SEARCHES.labels(result.plan.strategy.value).inc()
    CACHED.labels(result.cache.value).inc()
    for stage, milliseconds in result.timings_ms.items():
        STAGE_SECONDS.labels(stage).observe(milliseconds / 1000)
    for degradation in result.degraded:
        DEGRADED.labels(degradation.part).inc()
