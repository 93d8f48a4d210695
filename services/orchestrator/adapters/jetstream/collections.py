"""What collections demand of runs, by the records that ingestion keeps of them."""

import asyncio

from kit.access.principal import Principal
from kit.jetstream import Entry, Nats
from kit.stores.collection_map import CollectionMap
from kit.stores.collections import CollectionAccess, decode_access
from services.orchestrator.models import RunRequest


class NatsCollections:
    """CollectionRules over a map of the bucket, which this service never writes."""

    def __init__(self, known: CollectionMap[CollectionAccess]) -> None:
        self._known = known

    @classmethod
    async def open(cls, nats: Nats) -> "NatsCollections":
        return cls(await CollectionMap.open_to_read(nats, _decode))

    async def follow(self) -> None:
        """Keeps what is known up to date, until cancelled."""
        await self._known.run()

    async def bind_to_local_models(self, caller: Principal, request: RunRequest) -> bool:
        named = dict.fromkeys(request.collection_ids)
        if not named:
            await self._known.wait_confirmed()
            return self._known.reads_one_with_local_models_only(caller)
        asks = self._known.stored_allows_local_models_only
        return any(await asyncio.gather(*(asks(caller.tenant_id, each) for each in named)))


def _decode(entry: Entry) -> CollectionAccess | None:
    return decode_access(entry.value or b"")
