"""What ingestion measures. Labels are bounded: outcomes, reasons and stages, never an id."""

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram


class Metrics:
    """The instruments of API and worker, made once a process."""

    def __init__(self, registry: CollectorRegistry = REGISTRY) -> None:
        self.documents = Counter(
            "ingest_documents", "Documents that ended, by outcome and reason", ["outcome", "reason"], registry=registry
        )
        self.queue_depth = Gauge(
            "ingest_queue_depth",
            "Jobs in the queue, those in hand included; told by the leading worker",
            registry=registry,
        )
        self.dead_letters = Gauge(
            "ingest_dead_letters",
            "Jobs that were given up and wait for a person; told by the leading worker",
            registry=registry,
        )
        self.unreadable_records = Gauge(
            "ingest_unreadable_records",
            "Records found that cannot be read, by kind; the log names each (record_unreadable)",
            ["kind"],
            registry=registry,
        )
        self.unreadable_jobs = Counter(
            "ingest_unreadable_jobs", "Jobs dropped because they could not be read (job_unreadable)", registry=registry
        )
        self.disagreements = Gauge(
            "ingest_disagreements",
            "What records, names, files and indexes disagree about, by kind, as the last comparison found; told by the leading "
            "worker",
            ["kind"],
            registry=registry,
        )
        self.requeued_jobs = Counter(
            "ingest_requeued_jobs", "Jobs that were gone and were made again from their documents", registry=registry
        )
        self.chunks = Counter("ingest_chunks", "Chunks made searchable", registry=registry)
        self.stage_seconds = Counter("ingest_stage_seconds", "Seconds spent, by stage", ["stage"], registry=registry)
        self.seconds = Histogram(
            "ingest_document_seconds",
            "Seconds from the first byte read to searchable",
            buckets=(0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000),
            registry=registry,
        )
