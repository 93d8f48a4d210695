"""NATS JetStream as Groundwork uses it: one connection a process, key-value buckets with compare-and-set and server-side
listing, work queues that lose nothing, and an object store for files."""

from kit.jetstream.connection import Nats
from kit.jetstream.kv import Entry, KeyValue
from kit.jetstream.objects import ObjectStore, StoredObject
from kit.jetstream.opening import connect
from kit.jetstream.queues.work_queue import Job, WorkQueue

__all__ = ["Entry", "Job", "KeyValue", "Nats", "ObjectStore", "StoredObject", "WorkQueue", "connect"]
