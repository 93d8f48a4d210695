"""Instruments of the memory service. Labels are bounded: the role of a message."""

from prometheus_client import Counter

from kit.jetstream.queues.backlog import BacklogGauges

MESSAGES = Counter("groundwork_memory_messages", "Messages that were appended to threads.", ["role"])
QUEUE = BacklogGauges("groundwork_memory_queue", "threads to delete; reported by every memory service: use max")
