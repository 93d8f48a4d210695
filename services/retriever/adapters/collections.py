"""Which collections a caller may read, by the records that ingestion keeps of them."""

from collections.abc import Iterable

from kit.collection_map import CollectionMap
from kit.collections import CollectionAccess, decode_access
from kit.jetstream import Entry, Nats
from kit.principal import current_principal


class NatsCollections:
    """CollectionRights over a map of the bucket, which this service never writes."""

    def __init__(self, known: CollectionMap[CollectionAccess]) -> None:
        self._known = known

    @classmethod
    async def open(cls, nats: Nats) -> "NatsCollections":
        return cls(await CollectionMap.open_to_read(nats, _decode))

    async def follow(self) -> None:
        """Keeps what is known up to date, until cancelled."""
        await self._known.run()

    async def wait_known(self) -> None:
        """Returns once everything that is stored is known: for readiness."""
        await self._known.wait_confirmed()

    async def readable(self, collection_ids: Iterable[str]) -> tuple[str, ...]:
        return await self._known.readable(current_principal(), collection_ids)


def _decode(entry: Entry) -> CollectionAccess | None:
    return decode_access(entry.value or b"")
