"""What ingestion measures. Labels are bounded: outcomes, reasons and stages, never an id."""

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from kit.jetstream.queues.backlog import BacklogGauges


class Metrics:
    """The instruments of API and worker, made once a process."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.documents = Counter(
            "groundwork_ingest_documents",
            "Documents that ended, by outcome and reason",
            ["outcome", "reason"],
            registry=registry,
        )
        self.scans = Counter(
            "groundwork_ingest_scans",
            "Files that were shown to the scanner for viruses, by outcome: clean, infected, away",
            ["outcome"],
            registry=registry,
        )
        self.queue = BacklogGauges(
            "groundwork_ingest_queue", "reported by the leading worker, 0 elsewhere: use max", registry
        )
        self.dead_letters = Gauge(
            "groundwork_ingest_dead_letters",
            "Jobs that were given up and wait for a person; reported by the leading worker, 0 elsewhere: use max.",
            registry=registry,
        )
        self.unreadable_records = Gauge(
            "groundwork_ingest_unreadable_records",
            "Records found that cannot be read, by kind; the log names each (record_unreadable)",
            ["kind"],
            registry=registry,
        )
        self.unreadable_jobs = Counter(
            "groundwork_ingest_unreadable_jobs",
            "Jobs dropped because they could not be read (job_unreadable)",
            registry=registry,
        )
        self.disagreements = Gauge(
            "groundwork_ingest_disagreements",
            "What records, names, files and indexes disagree about, by kind, as the last comparison found; reported by the "
            "leading worker",
            ["kind"],
            registry=registry,
        )
        self.requeued_jobs = Counter(
            "groundwork_ingest_requeued_jobs",
            "Jobs that were gone and were made again from their documents",
            registry=registry,
        )
        self.chunks = Counter("groundwork_ingest_chunks", "Chunks made searchable", registry=registry)
        self.stage_seconds = Counter(
            "groundwork_ingest_stage_seconds", "Seconds spent, by stage", ["stage"], registry=registry
        )
        self.seconds = Histogram(
            "groundwork_ingest_document_seconds",
            "Seconds from the first byte read to searchable",
            buckets=(0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000),
            registry=registry,
        )
