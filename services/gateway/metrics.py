"""The gateway's instruments. Labels are bounded: the route's template, never a path."""

from prometheus_client import Counter, Gauge, Histogram

REQUESTS = Counter("groundwork_gateway_requests_total", "HTTP requests answered.", ["method", "route", "status"])
REQUEST_SECONDS = Histogram(
    "groundwork_gateway_request_seconds",
    "Seconds from the request's first byte to the answer's last; event streams live long.",
    ["method", "route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
)
EVENT_STREAMS = Gauge("groundwork_gateway_event_streams", "Event streams that are open.")
WEBSOCKETS = Gauge("groundwork_gateway_websockets", "WebSockets that are open.")
DOCUMENT_LISTENERS_RESTARTED = Counter(
    "groundwork_gateway_document_listeners_restarted_total",
    "Listeners to documents that were too slow and got the present states instead of each change.",
)
REATTACHED = Counter(
    "groundwork_gateway_run_streams_reattached_total", "Attempts to take up a run's broken stream again."
)
CONNECTIONS = Gauge("groundwork_gateway_connections", "Open connections of clients.")
CONNECTIONS_CUT = Counter(
    "groundwork_gateway_connections_cut_total",
    "Connections that the gateway ended or refused: refused, evicted, idle, head, body_unread, not_reading, bad_http.",
    ["reason"],
)
UPLOADED_BYTES = Counter("groundwork_gateway_uploaded_bytes_total", "Bytes of files passed on to ingest.")
ISSUER_FETCHES = Counter(
    "groundwork_gateway_issuer_fetches_total",
    "Times that the keys of an OIDC issuer were asked for: fetched, failed.",
    ["outcome"],
)
REFUSED_CALLERS = Counter(
    "groundwork_gateway_refused_callers_total", "Requests without a caller who may come in.", ["reason"]
)
