"""Everything that the services keep in the message store, as their `state.py` declare it. All that operates the store reads this.

A new store is a line in its service's `state.py`. Rights in NATS, backup, watch, doctor and documentation follow from it.
"""

from collections.abc import Mapping
from graphlib import TopologicalSorter

from kit.state import BellSubject, Declared, Queue, Store, Watch
from services.gateway import state as gateway
from services.ingest import state as ingest
from services.memory import state as memory
from services.orchestrator import state as orchestrator
from services.retriever import state as retriever
from services.tools import state as tools

BY_SERVICE: Mapping[str, tuple[Declared, ...]] = {
    "gateway": gateway.STATE,
    "retriever": retriever.STATE,
    "memory": memory.STATE,
    "ingest": ingest.STATE,
    "tools": tools.STATE,
    "orchestrator": orchestrator.STATE,
}
"""By the service that owns it. The reranker keeps nothing in the message store."""
STORES: tuple[Store, ...] = tuple(
    each for declared in BY_SERVICE.values() for each in declared if isinstance(each, Store)
)
BELLS: tuple[BellSubject, ...] = tuple(
    each for declared in BY_SERVICE.values() for each in declared if isinstance(each, BellSubject)
)
QUEUES: tuple[Queue, ...] = tuple(
    sorted((each for each in STORES if isinstance(each, Queue)), key=lambda each: each.name)
)
READING = ingest.JOBS
"""The queue of documents to read."""
USERS: tuple[str, ...] = tuple(dict.fromkeys(user for each in STORES for user in each.written_by))
"""The users of NATS: processes that keep something, which other processes cannot touch."""


def backup_order() -> tuple[Store, ...]:
    """The stores that need each other, each behind those that need it. The others may be copied at any time."""
    by_name = {each.name: each for each in STORES}
    needs = {each.name: each.needed_by for each in STORES if each.needed_by}
    return tuple(by_name[name] for name in TopologicalSorter(needs).static_order())


def watch_order() -> tuple[Store, ...]:
    """The stores whose entries the watch knows, each before those that need it. Queues it follows in another way."""
    ordered = tuple(reversed(backup_order()))
    others = tuple(each for each in STORES if each not in ordered)
    watched = (each for each in (*ordered, *others) if each.watch in (Watch.ENTRIES, Watch.VALUES))
    return tuple(each for each in watched if not isinstance(each, Queue))
