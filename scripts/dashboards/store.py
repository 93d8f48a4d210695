"""NATS and the queues."""

from scripts.dashboards.panels import (
    NS,
    OF_SERVICE,
    Dashboard,
    Panel,
    Row,
    counts,
    gauge,
    largest,
    quantile,
    quantiles,
    rate,
    total,
)

_OUR_VOLUMES = f'persistentvolumeclaim=~".*groundwork.*",{NS}'

STORE = Dashboard(
    "store",
    "Message store and queues",
    "NATS as the services see it, and as it sees itself where its exporter runs.",
    [
        Row(
            "As the services see it",
            [
                gauge(
                    "Without a connection",
                    f"(1 - groundwork_nats_connected{{{NS}}}) * {OF_SERVICE}",
                    "{{service}} {{instance}}",
                ),
                gauge(
                    "Connections made anew",
                    rate("groundwork_nats_reconnections_total", "instance"),
                    "{{instance}}",
                    "ops",
                ),
                gauge(
                    "Requests sent again",
                    rate("groundwork_nats_repetitions_total", "instance"),
                    "{{instance}}",
                    "ops",
                    "A leader was being elected.",
                ),
                gauge("Writes, p95", quantile(0.95, "groundwork_nats_write_seconds", "stream"), "{{stream}}", "s"),
                gauge("Writes", rate("groundwork_nats_write_seconds_count", "stream"), "{{stream}}", "wps"),
                gauge("Writes that failed", rate("groundwork_nats_failed_writes_total", "stream"), "{{stream}}", "ops"),
            ],
        ),
        Row(
            "Queues",
            [
                Panel(
                    "Jobs",
                    [
                        (largest("groundwork_ingest_queue_depth"), "documents to read"),
                        (largest("groundwork_forget_queue_depth"), "texts to forget"),
                        (largest("groundwork_memory_queue_depth"), "threads to delete"),
                    ],
                ),
                Panel(
                    "Age of the oldest job",
                    [
                        (largest("groundwork_ingest_queue_oldest_seconds"), "documents to read"),
                        (largest("groundwork_forget_queue_oldest_seconds"), "texts to forget"),
                        (largest("groundwork_memory_queue_oldest_seconds"), "threads to delete"),
                    ],
                    "s",
                ),
                counts("Deliveries", "groundwork_queue_jobs_total", "queue, outcome"),
                quantiles("Waiting", "groundwork_queue_wait_seconds", "queue"),
                quantiles("Work on a job", "groundwork_queue_job_seconds", "queue"),
                gauge("In hand", total("groundwork_queue_jobs_in_hand", "queue"), "{{queue}}"),
            ],
        ),
        Row(
            "As NATS sees itself (prometheus-nats-exporter)",
            [
                gauge(
                    "Bytes by stream",
                    f"max by (stream_name) (jetstream_stream_total_bytes{{{NS}}})",
                    "{{stream_name}}",
                    "bytes",
                ),
                gauge("Memory", f"gnatsd_varz_mem{{{NS}}}", "{{server_id}}", "bytes"),
                gauge("Slow consumers", f"gnatsd_varz_slow_consumers{{{NS}}}", "{{server_id}}"),
            ],
        ),
        Row(
            "Volumes (kubelet)",
            [
                gauge(
                    "Room left",
                    f"kubelet_volume_stats_available_bytes{{{_OUR_VOLUMES}}} / kubelet_volume_stats_capacity_bytes",
                    "{{persistentvolumeclaim}}",
                    "percentunit",
                ),
            ],
        ),
    ],
)
