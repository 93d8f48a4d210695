"""The first look: whether it works, and where to look next."""

from scripts.dashboards.panels import (
    DEGRADED_RUNS,
    FAILED_RUNS,
    NS,
    OF_SERVICE,
    RATE,
    RUNS,
    Dashboard,
    Row,
    counts,
    gauge,
    largest,
    quantile,
    quantiles,
    rate,
    share,
    stat,
    total,
)

_BAD_REQUESTS = rate("groundwork_gateway_requests_total", where='status=~"5.."')
_REQUESTS = rate("groundwork_gateway_requests_total")
_STREAMS = 'method!~"OrchestratorService/(StartRun|AttachRun)|IngestService/WatchDocuments"'
_CALL_SECONDS = quantile(0.95, "groundwork_grpc_server_seconds", "method", _STREAMS)

OVERVIEW = Dashboard(
    "overview",
    "Overview",
    "Whether it works, for whom it does not, and where to look next.",
    [
        Row(
            "Now",
            [
                stat(
                    "Processes ready", f"sum(groundwork_ready{{{NS}}}) / count(groundwork_ready{{{NS}}})", "percentunit"
                ),
                stat("Requests that fail", share(_BAD_REQUESTS, _REQUESTS), "percentunit", alarm_above=0.02),
                stat("Runs that fail", share(FAILED_RUNS, RUNS), "percentunit", alarm_above=0.05),
                stat("Answers degraded", share(DEGRADED_RUNS, RUNS), "percentunit", alarm_above=0.2),
                stat("Documents waiting", largest("groundwork_ingest_queue_depth")),
                stat("Dead letters", largest("groundwork_ingest_dead_letters"), alarm_above=1),
            ],
        ),
        Row(
            "What is asked of it",
            [
                counts("Requests by status", "groundwork_gateway_requests_total", "status"),
                counts("Runs by how they ended", "groundwork_runs_total", "status"),
                counts("Documents by how they ended", "groundwork_ingest_documents_total", "outcome"),
                quantiles("Time of a run", "groundwork_run_seconds", "mode"),
                quantiles("Time of a search", "groundwork_retriever_stage_seconds", where='stage="total"'),
                quantiles("Time until a document is searchable", "groundwork_ingest_document_seconds"),
            ],
        ),
        Row(
            "Processes",
            [
                gauge("Not ready", f"(1 - groundwork_ready{{{NS}}}) * {OF_SERVICE}", "{{service}} {{instance}}"),
                gauge(
                    "Processor",
                    f"rate(process_cpu_seconds_total{{{NS}}}[{RATE}]) * {OF_SERVICE}",
                    "{{service}} {{instance}}",
                    "percentunit",
                    "Of one core.",
                ),
                gauge(
                    "Memory",
                    f"process_resident_memory_bytes{{{NS}}} * {OF_SERVICE}",
                    "{{service}} {{instance}}",
                    "bytes",
                ),
                gauge(
                    "Event loop: how late, p99",
                    f"{quantile(0.99, 'groundwork_event_loop_lag_seconds', 'instance')} * {OF_SERVICE}",
                    "{{service}} {{instance}}",
                    "s",
                    "What blocks the loop holds up every request of the process.",
                ),
                gauge(
                    "Restarts of containers",
                    f'sum by (pod) (increase(kube_pod_container_status_restarts_total{{pod=~".*groundwork.*",{NS}}}[{RATE}]))',
                    "{{pod}}",
                    about="From kube-state-metrics; empty outside of Kubernetes.",
                ),
                gauge(
                    "Versions",
                    f"count by (service, version) (groundwork_build_info{{{NS}}})",
                    "{{service}} {{version}}",
                ),
            ],
        ),
        Row(
            "Calls between services",
            [
                counts(
                    "Calls that did not end well",
                    "groundwork_grpc_server_requests_total",
                    "method, code",
                    'code!~"OK|CANCELLED|NOT_FOUND"',
                ),
                gauge(
                    "Time, p95",
                    f"topk(12, {_CALL_SECONDS})",
                    "{{method}}",
                    "s",
                    "Without streams, which last as long as they are read.",
                ),
                gauge("In hand", total("groundwork_grpc_server_requests_in_hand", "method"), "{{method}}"),
                counts(
                    "Attempts that found nobody",
                    "groundwork_grpc_client_requests_total",
                    "method",
                    'code="UNAVAILABLE"',
                ),
            ],
        ),
    ],
)
