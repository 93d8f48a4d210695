"""Where API keys are kept: the bucket `API_KEYS`, one key `<tenant>.<id>`, of whose text only a hash is there. When each was last
used is in `API_KEY_USES`, written now and then and never waited for, so that noting a use changes no record."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import datetime

from pydantic import SecretStr

from kit.access.api_keys import ApiKey, decode, encode, new_key
from kit.access.principal import OPERATOR
from kit.errors import Aborted, NotFound, Unauthenticated
from kit.jetstream import Entry, KeyValue, Nats
from kit.records import UNREADABLE, set_aside
from kit.shared_state import API_KEY_USES, API_KEYS

_ATTEMPTS = 10
"""Of a compare-and-set: two people at the same key are rare."""


class ApiKeyNotFound(NotFound):
    """There is no such key, or it is another's."""

    reason = "API_KEY_NOT_FOUND"


@dataclass(frozen=True)
class KeyChange:
    """An entry of the bucket as a watcher sees it. `key` is None for one that is gone, or cannot be read: it opens nothing."""

    key_id: str
    key: ApiKey | None
    revision: int


class ApiKeyStore:
    """The keys. All methods raise Unavailable when the server does not answer."""

    def __init__(self, nats: Nats, keys: KeyValue, uses: KeyValue) -> None:
        self._nats = nats
        self._keys = keys
        self._uses = uses

    @classmethod
    async def open(cls, nats: Nats) -> "ApiKeyStore":
        """Opens the buckets, making them on first use."""
        keys = await KeyValue.open(nats, API_KEYS.name)
        return cls(nats, keys, await KeyValue.open(nats, API_KEY_USES.name, ttl_s=API_KEY_USES.kept_for_s))

    async def create(self, key: ApiKey) -> int:
        """Keeps a new key; its revision. Raises AlreadyExists."""
        return await self._keys.create(_place(key), encode(key))

    async def create_first_operator(self, make: Callable[[], tuple[ApiKey, SecretStr]]) -> SecretStr | None:
        """Keeps the key that `make` makes unless there is one by which an operator gets in: then None. Of several who try at once
        one succeeds, since nothing may have been written to the bucket between looking and keeping."""
        for _ in range(_ATTEMPTS):
            position = await self._keys.last_position()
            key, text = make()
            if any(each.status(key.created_at) == "active" and OPERATOR in each.scopes for each in await self.all()):
                return None
            try:
                await self._keys.put_if_bucket_unchanged(_place(key), encode(key), position)
            except Aborted:
                continue
            return text
        raise Aborted("API keys are being changed all the while; try again in a moment", reason="API_KEYS_BUSY")

    async def change(self, tenant_id: str, key_id: str, change: Callable[[ApiKey], ApiKey]) -> tuple[ApiKey, int]:
        """Has `change` make another record of the present one; what is kept then, and its revision. Raises ApiKeyNotFound."""
        place = f"{tenant_id}.{key_id}"
        for _ in range(_ATTEMPTS):
            entry = await self._keys.get(place)
            before = _decoded(entry) if entry else None
            if entry is None or before is None:
                raise not_found(key_id)
            after = change(before)
            if after == before:
                return before, entry.revision
            try:
                return after, await self._keys.update(place, encode(after), entry.revision)
            except Aborted:
                continue
        raise Aborted(f"API key {key_id} is being changed all the while; try again in a moment", reason="API_KEY_BUSY")

    async def forget(self, key: ApiKey) -> None:
        """Removes the record if it is still as `key`, and when it was last used."""
        entry = await self._keys.get(_place(key))
        if entry is not None and _decoded(entry) == key:
            with suppress(Aborted):
                await self._keys.purge(_place(key), entry.revision)
                await self._uses.purge(_place(key))

    async def all(self) -> list[ApiKey]:
        """All keys of all tenants. One that cannot be read is left out."""
        return [key async for entry in self._keys.entries(">") if (key := _decoded(entry))]

    async def last_revision(self) -> int:
        """Of the newest change of any key."""
        return await self._keys.last_revision()

    async def watch(self) -> AsyncGenerator[KeyChange | None]:
        """All keys, then None once, then each change."""
        async with aclosing(self._keys.watch()) as entries:
            async for entry in entries:
                if entry is None:
                    yield None
                else:
                    key_id = entry.key.rpartition(".")[2]
                    yield KeyChange(key_id, _decoded(entry) if entry.value is not None else None, entry.revision)

    async def note_use(self, key: ApiKey, at: datetime) -> None:
        """Keeps when a key was last used."""
        await self._uses.put(_place(key), _encode_use(at))

    async def last_uses(self, tenant_id: str, key_id: str = "*") -> dict[str, datetime]:
        """When the keys of a tenant, or one of them, were last used, by id; to a minute or so."""
        uses: dict[str, datetime] = {}
        async for entry in self._uses.entries(f"{tenant_id}.{key_id}"):
            try:
                uses[entry.key.rpartition(".")[2]] = _decode_use(entry.value or b"")
            except UNREADABLE as error:
                set_aside(API_KEY_USES.name, entry.key, error)
        return uses


def bootstrap_key(tenant_id: str, subject: str, now: datetime) -> tuple[ApiKey, SecretStr]:
    """A key for an operator, by which all others can be made."""
    return new_key(
        name="bootstrap",
        tenant_id=tenant_id,
        subject=subject,
        scopes=(OPERATOR,),
        created_at=now,
        created_by="groundwork keys bootstrap",
    )


def not_found(key_id: str) -> ApiKeyNotFound:
    """The same words for a key that does not exist and for one that is another's."""
    return ApiKeyNotFound(f"there is no API key {key_id}; list yours with GET /v1/keys")


def _encode_use(at: datetime) -> bytes:
    return json.dumps({"at": at.isoformat()}).encode()


def _decode_use(value: bytes) -> datetime:
    """Raises one of UNREADABLE."""
    return datetime.fromisoformat(json.loads(value)["at"])


def _place(key: ApiKey) -> str:
    return f"{key.tenant_id}.{key.key_id}"


def _decoded(entry: Entry) -> ApiKey | None:
    """None for what cannot be read, and for a record that was put into another's place."""
    try:
        key = decode(entry.value or b"")
        if _place(key) != entry.key:
            raise ValueError("it is kept in another key's place")
    except (*UNREADABLE, Unauthenticated) as error:
        set_aside(API_KEYS.name, entry.key, error)
        return None
    return key
