"""Dead letters in a JetStream key-value bucket. The key says whose they are, so that the server filters listings."""

from collections.abc import AsyncIterator

from kit.jetstream import KeyValue, Nats
from services.ingest.adapters.jetstream.record_reader import RecordReader
from services.ingest.documents import records
from services.ingest.documents.models import DeadLetter
from services.ingest.metrics import Metrics
from services.ingest.state import DEAD_LETTERS


class NatsDeadLetterStore:
    """Bucket DEAD_LETTERS: `<tenant>.<collection>.<document>.<revision>`."""

    def __init__(self, letters: KeyValue, metrics: Metrics) -> None:
        self._letters = letters
        self._reader = RecordReader("dead_letter", records.decode_dead_letter, _key, metrics.unreadable_records)

    @classmethod
    async def open(cls, nats: Nats, metrics: Metrics) -> "NatsDeadLetterStore":
        return cls(await KeyValue.open(nats, DEAD_LETTERS.name), metrics)

    async def put(self, letter: DeadLetter) -> None:
        await self._letters.put(_key(letter), records.encode_dead_letter(letter))

    async def get(self, tenant_id: str, revision_id: str) -> DeadLetter | None:
        async for letter in self._matching(f"{tenant_id}.*.*.{revision_id}"):
            return letter
        return None

    async def delete(self, letter: DeadLetter) -> None:
        await self._letters.purge(_key(letter))

    async def all_of(self, tenant_id: str, collection_id: str = "*") -> AsyncIterator[DeadLetter]:
        async for letter in self._matching(f"{tenant_id}.{collection_id}.*.*"):
            yield letter

    async def _matching(self, pattern: str) -> AsyncIterator[DeadLetter]:
        async for entry in self._letters.entries(pattern):
            letter = self._reader.read_if_possible(entry)
            if letter is not None:
                yield letter


def _key(letter: DeadLetter) -> str:
    return f"{letter.tenant_id}.{letter.collection_id}.{letter.document_id}.{letter.revision_id}"
