"""From the upload to the index."""

from scripts.dashboards.panels import Dashboard, Panel, Row, counts, gauge, largest, quantiles, rate, stat, total

INGESTION = Dashboard(
    "ingestion",
    "Ingestion",
    "From the upload to the index, and what waits.",
    [
        Row(
            "Now",
            [
                stat("In the queue", largest("groundwork_ingest_queue_depth")),
                stat("Oldest", largest("groundwork_ingest_queue_oldest_seconds"), "s", alarm_above=3600),
                stat("In hand", total("groundwork_queue_jobs_in_hand", where='queue="INGEST"')),
                stat("Dead letters", largest("groundwork_ingest_dead_letters"), alarm_above=1),
                stat("Unreadable records", largest("groundwork_ingest_unreadable_records"), alarm_above=1),
                stat("Disagreements", largest("groundwork_ingest_disagreements"), alarm_above=1),
            ],
        ),
        Row(
            "Documents",
            [
                counts("By how they ended", "groundwork_ingest_documents_total", "outcome, reason"),
                quantiles(
                    "Until searchable", "groundwork_ingest_document_seconds", about="Of the work, without waiting."
                ),
                quantiles("Waiting in the queue", "groundwork_queue_wait_seconds", where='queue="INGEST"'),
                Panel("Chunks", [(rate("groundwork_ingest_chunks_total"), "made searchable")], "cps"),
                gauge(
                    "Where the time goes",
                    rate("groundwork_ingest_stage_seconds_total", "stage"),
                    "{{stage}}",
                    "s",
                    "Seconds spent a second, by stage.",
                ),
                counts("Deliveries of jobs", "groundwork_queue_jobs_total", "outcome", 'queue="INGEST"'),
            ],
        ),
        Row(
            "Uploads and upkeep",
            [
                Panel("Uploaded", [(rate("groundwork_gateway_uploaded_bytes_total"), "bytes")], "Bps"),
                gauge(
                    "Disagreements, by kind",
                    largest("groundwork_ingest_disagreements", "kind"),
                    "{{kind}}",
                    about="What the last comparison of records, names, files and indexes found.",
                ),
                Panel(
                    "Jobs made again",
                    [
                        (rate("groundwork_ingest_requeued_jobs_total"), "requeued"),
                        (rate("groundwork_ingest_unreadable_jobs_total"), "unreadable"),
                    ],
                    "ops",
                ),
            ],
        ),
    ],
)
