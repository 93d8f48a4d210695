"""Composition root of the memory service."""

import secrets
from datetime import UTC, datetime

from groundwork.memory.v1 import memory_pb2, memory_pb2_grpc

from kit.process.service import Service
from kit.stores.idempotency import IdempotencyKeys
from kit.stores.message_store import lasting, open_message_store
from services.memory import metrics
from services.memory.adapters.deletions import NatsDeletions
from services.memory.adapters.nats import NatsThreadStore
from services.memory.handlers import DeletionHandler, MemoryServicer
from services.memory.settings import MemorySettings
from services.memory.state import KEYS
from services.memory.threads import Threads

THREAD_ID_BYTES = 6
"""12 hex characters, as the contract says."""
_DELETIONS_AT_ONCE = 8


async def run(settings: MemorySettings) -> None:
    """Serves until told to stop."""
    async with Service("memory", settings) as service:
        nats = await open_message_store(service, settings)
        store = await NatsThreadStore.open(nats)
        deletions = await NatsDeletions.open(nats, service.signer, service.verifier)
        keys = await IdempotencyKeys.open(nats, KEYS)
        threads = Threads(store, deletions, now=_now, new_thread_id=lambda: secrets.token_hex(THREAD_ID_BYTES))
        handler = DeletionHandler(threads)
        service.spawn(
            lasting(
                "deletions",
                lambda: deletions.queue_of_threads.consume(handler.handle, concurrency=_DELETIONS_AT_ONCE),
            )
        )
        service.spawn(lasting("backlog", lambda: deletions.queue_of_threads.tell_backlog(metrics.QUEUE)))
        service.add_servicer(
            memory_pb2_grpc.add_MemoryServiceServicer_to_server,
            MemoryServicer(threads, keys, now=_now),
            memory_pb2.DESCRIPTOR.services_by_name["MemoryService"],
        )
        await service.serve()


def _now() -> datetime:
    return datetime.now(UTC)
