"""Composition root of the memory service."""

import secrets
from datetime import UTC, datetime

from groundwork.memory.v1 import memory_pb2, memory_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2

from kit.process.service import Service
from kit.stores.idempotency import IdempotencyKeys
from kit.stores.message_store import lasting, open_message_store
from services.memory import metrics
from services.memory.adapters.deletions import NatsDeletions
from services.memory.adapters.facts import NatsFactStore
from services.memory.adapters.nats import NatsThreadStore
from services.memory.adapters.retriever import RetrieverMemoryIndex, RetrieverNotes
from services.memory.facts.facts import Facts
from services.memory.facts.learning import Learner
from services.memory.facts.notes import NoteSearch
from services.memory.facts.searching import MemorySearch
from services.memory.facts.turns import Turns
from services.memory.handlers import DeletionHandler, MemoryServicer
from services.memory.settings import MemorySettings
from services.memory.state import KEYS
from services.memory.threads import Threads

THREAD_ID_BYTES = 6
"""12 hex characters, as the contract says."""
_DELETIONS_AT_ONCE = 8


async def run(settings: MemorySettings) -> None:
    """Serves until a signal stops it."""
    async with Service("memory", settings) as service:
        nats = await open_message_store(service, settings)
        store = await NatsThreadStore.open(nats)
        deletions = await NatsDeletions.open(nats, service.signer, service.verifier)
        keys = await IdempotencyKeys.open(nats, KEYS)
        index, notes = await _indexes(service, settings)
        threads = Threads(store, deletions, index, now=_now, new_thread_id=lambda: secrets.token_hex(THREAD_ID_BYTES))
        fact_store = await NatsFactStore.open(nats)
        learner = Learner(fact_store, now=_now)
        facts = Facts(fact_store, learner, index, deletions, now=_now, enabled=settings.memory_enabled)
        handler = DeletionHandler(threads)
        service.spawn(
            lasting(
                "deletions",
                lambda: deletions.queue_of_threads.consume(handler.handle, concurrency=_DELETIONS_AT_ONCE),
            )
        )
        service.spawn(lasting("backlog", lambda: deletions.queue_of_threads.report_backlog(metrics.QUEUE)))
        service.add_servicer(
            memory_pb2_grpc.add_MemoryServiceServicer_to_server,
            MemoryServicer(
                threads,
                keys,
                facts,
                MemorySearch(facts, index, NoteSearch(notes, now=_now)),
                Turns(facts, learner, index, threads),
                now=_now,
            ),
            memory_pb2.DESCRIPTOR.services_by_name["MemoryService"],
        )
        await service.serve()


async def _indexes(service: Service, settings: MemorySettings) -> tuple[RetrieverMemoryIndex, RetrieverNotes]:
    contract = [retriever_pb2.DESCRIPTOR.services_by_name["RetrieverService"]]
    channel = await service.channel(settings.retriever_address, contract)
    search_timeout_s = settings.memory_search_timeout_s
    memories = RetrieverMemoryIndex(
        channel, search_timeout_s=search_timeout_s, write_timeout_s=settings.memory_index_timeout_s
    )
    local = settings.local_principal()
    return memories, RetrieverNotes(channel, settings.tools_notes_collection, local, timeout_s=search_timeout_s)


def _now() -> datetime:
    return datetime.now(UTC)
