"""Instruments of a process's connection to NATS and of its work queues. Labels are names of streams, which are constants of ours:
a key-value bucket is the stream `KV_<bucket>`, a store of files `OBJ_<name>`."""

from prometheus_client import Counter, Gauge, Histogram

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 12)

CONNECTED = Gauge("groundwork_nats_connected", "Whether there is a connection to NATS.")
RECONNECTIONS = Counter("groundwork_nats_reconnections", "Connections to NATS that were made anew.")
WRITE_SECONDS = Histogram(
    "groundwork_nats_write_seconds",
    "Seconds until a write was on NATS' disks, repetitions included.",
    ["stream"],
    buckets=_SECONDS,
)
FAILED_WRITES = Counter(
    "groundwork_nats_failed_writes",
    "Writes that NATS did not confirm or refused; a lost compare-and-set, which is no failure, is not counted.",
    ["stream"],
)
REPETITIONS = Counter(
    "groundwork_nats_repetitions",
    "Requests that were sent again since NATS had not answered: a leader was being elected.",
)

JOBS = Counter(
    "groundwork_queue_jobs",
    "Jobs by what became of a delivery: done, retried (it comes back after a while), failed (its handler broke; it comes back), "
    "handed_back (the worker stops), refused (its token is not valid), or unsettled (NATS did not hear that it was done).",
    ["queue", "outcome"],
)
JOB_SECONDS = Histogram(
    "groundwork_queue_job_seconds",
    "Seconds of work on a job, by delivery.",
    ["queue"],
    buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000),
)
JOB_WAIT_SECONDS = Histogram(
    "groundwork_queue_wait_seconds",
    "Seconds from queueing a job to its first delivery.",
    ["queue"],
    buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3600),
)
JOBS_IN_HAND = Gauge("groundwork_queue_jobs_in_hand", "Jobs that this process is working on.", ["queue"])
