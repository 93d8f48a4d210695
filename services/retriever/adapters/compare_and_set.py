"""How the retriever changes a record in a NATS key-value bucket: only where it is still the one that was read."""

from kit.errors import Aborted, AlreadyExists
from kit.jetstream import KeyValue
from services.retriever.errors import PointerConflict


async def put_if_unchanged(bucket: KeyValue, key: str, value: bytes, expected_version: int | None) -> int:
    """Writes if the key has this version, or is absent for None. Returns the new version. Raises PointerConflict."""
    try:
        if expected_version is None:
            return await bucket.create(key, value)
        return await bucket.update(key, value, expected_version)
    except (Aborted, AlreadyExists) as error:
        raise PointerConflict(key) from error
