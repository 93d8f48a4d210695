"""The model server's instruments. Labels are bounded: the lane and a fixed set of reasons, never an id."""

from prometheus_client import Counter, Gauge, Histogram

from services.reranker.models import Lane

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

BATCH_TEXTS = Histogram(
    "groundwork_reranker_batch_texts", "Texts of one batch.", ["lane"], buckets=(1, 2, 4, 8, 16, 32, 64, 128)
)
BATCH_TOKENS = Histogram(
    "groundwork_reranker_batch_tokens",
    "Tokens of one batch, padding counted.",
    ["lane"],
    buckets=(16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192),
)
PADDING_TOKENS = Counter("groundwork_reranker_padding_tokens_total", "Tokens computed for nothing: padding.", ["lane"])
TOKENS = Counter("groundwork_reranker_tokens_total", "Tokens that models have read, padding not counted.", ["lane"])
QUEUE_SECONDS = Histogram(
    "groundwork_reranker_queue_seconds",
    "Seconds from a request's arrival to its first batch.",
    ["lane"],
    buckets=_SECONDS,
)
INFERENCE_SECONDS = Histogram(
    "groundwork_reranker_inference_seconds", "Seconds the model took for one batch.", ["lane"], buckets=_SECONDS
)
QUEUED_TOKENS = Gauge("groundwork_reranker_queued_tokens", "Tokens that wait for the model, padding counted.", ["lane"])
UNSERVED = Counter(
    "groundwork_reranker_unserved_requests_total",
    "Requests that got no vectors: refused (queue_full), given up by their caller (abandoned), or broken (failed).",
    ["lane", "reason"],
)
PASSAGE_CACHE = Counter("groundwork_reranker_passage_cache_total", "Look-ups of encoded texts in memory.", ["outcome"])
PASSAGE_STORE = Counter(
    "groundwork_reranker_passage_store_total",
    "Encoded passages on disk: looked up (hit, miss, or slow: the disk did not answer in time), not kept because too much "
    "waited for the disk (dropped), or removed because nobody had used them for long (collected).",
    ["outcome"],
)
PASSAGE_STORE_BYTES = Gauge("groundwork_reranker_passage_store_bytes", "Bytes on disk that encoded passages take.")
MEMORY_RETRIES = Counter(
    "groundwork_reranker_memory_retries_total",
    "Batches that did not fit into the device's memory and were halved.",
    ["lane"],
)
for _lane in Lane:  # there from the start, so that the first one is an increase
    MEMORY_RETRIES.labels(_lane.name.lower())
DEVICE_MEMORY = Gauge(
    "groundwork_reranker_device_memory_bytes",
    "Memory of the GPU that models run on: free and total of the device, ours what this process holds. Only where there is one.",
    ["kind"],
)
MODEL_INFO = Gauge(
    "groundwork_reranker_model_info",
    "1; its labels say which models run here, and on what.",
    ["task", "model", "runtime"],
)
PROVIDER_REQUESTS = Counter(
    "groundwork_reranker_provider_requests_total",
    "Requests to remote model APIs by their outcome.",
    ["provider", "outcome"],
)
