"""The audit log in the message store: a chain for each tenant in the stream `AUDIT`, to which all gateways append. An append names
the message that it expects to be the last, so that of two gateways one appends first and the other goes on from there."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import structlog
from nats.js import api
from nats.js.errors import APIError, NotFoundError

from kit.jetstream import Nats
from kit.jetstream.failures import WRONG_LAST_SEQUENCE
from kit.jetstream.reading import StoredMessage, all_messages, last_position
from kit.records import UNREADABLE, set_aside
from kit.state import DAY_S
from kit.stores.audit_chain import ChainLink, canonical, link_of, sealed
from services.gateway.state import AUDIT

_log = structlog.get_logger()
UNKNOWN_CALLERS = "_unknown"
"""In place of a tenant: requests of callers who showed no good key. No tenant begins with an underscore."""


@dataclass(frozen=True)
class Head:
    """Where a chain ends."""

    position: int
    """Of its last message in the stream; 0 where there is none."""
    link: ChainLink


class AuditStore:
    """All chains over one NATS connection. Its methods raise Unavailable, and APIError where the server refuses."""

    def __init__(self, nats: Nats, *, retention_days: float, max_bytes: int, heads: dict[str, Head]) -> None:
        self._nats = nats
        self._retention_days = retention_days
        self._max_bytes = max_bytes
        self._heads = heads

    @classmethod
    async def open(
        cls, nats: Nats, *, retention_days: float, max_bytes: int, heads: dict[str, Head] | None = None
    ) -> "AuditStore":
        """Makes the stream, or has it keep as much, and for as long, as the settings say now. `heads` is what is known of chains
        from an earlier connection; it is kept up to date."""
        store = cls(nats, retention_days=retention_days, max_bytes=max_bytes, heads={} if heads is None else heads)
        await store._make()
        return store

    async def append(self, tenant_id: str, entries: Sequence[Mapping[str, Any]], batch_id: str) -> ChainLink:
        """Seals entries behind the last one of their tenant, as one message; the last link then. What is sent again under the same
        `batch_id` is stored once."""
        subject = _subject(tenant_id)
        head = self._heads.get(tenant_id) or await self._stored_head(subject)
        while True:
            self._heads[tenant_id] = head
            lines, link = _chained(entries, head.link)
            headers = {
                api.Header.MSG_ID.value: batch_id,
                api.Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: str(head.position),
            }
            data = "\n".join(lines).encode()
            try:
                position = await self._nats.store(AUDIT.stream, subject, data, headers, make=self._make)
            except APIError as error:
                if error.err_code not in WRONG_LAST_SEQUENCE:
                    raise
                head, stored = await self._newer(subject, head, batch_id)
                if stored is not None:
                    self._heads[tenant_id] = head
                    return stored
            else:
                self._heads[tenant_id] = Head(position, link)
                return link

    async def lines(self, tenant_id: str, *, after: int = 0, since: datetime | None = None) -> AsyncGenerator[str]:
        """The entries of a tenant as lines of JSON, oldest first: those with a number behind `after` that were stored at `since` or
        later, without a gap."""
        subject = _subject(tenant_id)
        start = await self._start(subject, after, since)
        async with aclosing(all_messages(self._nats, AUDIT.stream, subject, after=start)) as messages:
            async for message in messages:
                for line in message.data.decode(errors="replace").splitlines():
                    try:
                        number = link_of(line).number
                    except UNREADABLE as error:
                        set_aside(AUDIT.stream, message.subject, error)
                        continue
                    if number > after:
                        yield line

    async def newest(self, tenant_id: str, *, before: int, since: datetime | None, limit: int) -> list[str]:
        """The `limit` entries with the largest numbers below `before` (0: of all), newest first, that were stored at `since` or
        later. They are held in memory, so bound `limit`."""
        end = (await self._stored_head(_subject(tenant_id))).link.number + 1
        end = min(before, end) if before else end
        found: list[str] = []
        async with aclosing(self.lines(tenant_id, after=max(end - 1 - limit, 0), since=since)) as lines:
            async for line in lines:
                if link_of(line).number >= end:
                    break
                found.append(line)
        return found[::-1]

    async def _make(self) -> None:
        await self._nats.ensure_stream(
            api.StreamConfig(
                name=AUDIT.stream,
                subjects=[AUDIT.subjects],
                storage=api.StorageType.FILE,
                max_age=self._retention_days * DAY_S,
                max_bytes=self._max_bytes,
                discard=api.DiscardPolicy.OLD,
                allow_direct=True,
                deny_delete=True,
                deny_purge=True,
                compression=api.StoreCompression.S2,
            )
        )

    async def _stored_head(self, subject: str) -> Head:
        """Where the stored chain ends: at its last message, or at the last one that can be read."""
        last = await last_position(self._nats, AUDIT.stream, subject)
        link = ChainLink()
        for start in (max(last - 1, 0), 0):
            async with aclosing(all_messages(self._nats, AUDIT.stream, subject, after=start)) as messages:
                async for message in messages:
                    link = _last_link(message) or link
            if link.number:
                break
        return Head(last, link)

    async def _newer(self, subject: str, head: Head, batch_id: str) -> tuple[Head, ChainLink | None]:
        """Where the chain ends now that another has written behind `head`; and the last link of the batch if it was stored by an
        earlier try whose answer was lost."""
        found, stored = head, None
        async with aclosing(all_messages(self._nats, AUDIT.stream, subject, after=head.position)) as messages:
            async for message in messages:
                link = _last_link(message)
                if message.headers.get(api.Header.MSG_ID.value) == batch_id:
                    stored = link
                found = Head(message.position, link or found.link)
        if found == head:
            found = await self._after_loss(subject, head)
        return found, stored

    async def _after_loss(self, subject: str, head: Head) -> Head:
        """Where to go on when the last known message is gone: behind the last known entry, so that a gap shows what is missing,
        unless another gateway has gone on already. It is as it should be where the stream has removed it with all before it."""
        stored = await self._stored_head(subject)
        if stored.link.number > head.link.number:
            return stored
        if (await self._nats.state(AUDIT.stream))["first_seq"] <= head.position:
            _log.warning(
                "audit_entries_gone", subject=subject, from_number=stored.link.number + 1, to_number=head.link.number
            )
        return replace(head, position=stored.position)

    async def _start(self, subject: str, after: int, since: datetime | None) -> int:
        """The position behind which the first wanted entry lies. Numbers and times grow with positions, so it is found by halving:
        some twenty questions, however long the log is."""
        low, high = 0, await last_position(self._nats, AUDIT.stream, subject) if after or since else 0
        while low < high:
            middle = (low + high) // 2
            message = await self._first_behind(subject, middle)
            if message is None or not _is_before(message, after, since):
                high = middle
            else:
                low = message.position
        return low

    async def _first_behind(self, subject: str, position: int) -> StoredMessage | None:
        async def ask(timeout_s: float) -> api.RawStreamMsg | None:
            with suppress(NotFoundError):
                async with asyncio.timeout(timeout_s):
                    return await self._nats.js.get_msg(AUDIT.stream, seq=position + 1, subject=subject, next=True)
            return None

        message = await self._nats.persist(f"stream {AUDIT.stream}", ask)
        if message is None or message.seq is None or message.time is None:
            return None
        return StoredMessage(subject, message.seq, message.time, message.data or b"")


def _subject(tenant_id: str) -> str:
    return f"{AUDIT.prefix}{tenant_id}.log"


def _chained(entries: Sequence[Mapping[str, Any]], link: ChainLink) -> tuple[list[str], ChainLink]:
    lines = []
    for each in entries:
        entry = sealed(each, link)
        link = ChainLink(entry["number"], entry["hash"])
        lines.append(canonical(entry))
    return lines, link


def _last_link(message: StoredMessage) -> ChainLink | None:
    """None for a message that cannot be read."""
    try:
        return link_of(message.data.decode().splitlines()[-1])
    except (*UNREADABLE, IndexError) as error:
        set_aside(AUDIT.stream, message.subject, error)
        return None


def _is_before(message: StoredMessage, after: int, since: datetime | None) -> bool:
    """Whether all entries of the message come before those that are wanted. One that cannot be read counts as such."""
    link = _last_link(message)
    return link is None or link.number <= after or (since is not None and message.at < since)
