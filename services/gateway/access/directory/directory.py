"""The users and groups that identity providers have sent by SCIM, as this gateway knows them. A watch keeps all records in
memory, so a request needs no call to the message store. A user who was deactivated or deleted is refused with every key, token and
login, and their streams end."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from kit.access.principal import Principal, usable_groups
from kit.errors import Aborted, Unauthenticated, Unavailable
from kit.jetstream import Entry, KeyValue, Nats
from kit.records import UNREADABLE, set_aside
from kit.stores.followed_bucket import FollowedBucket
from services.gateway.access.directory.people import Naming, People
from services.gateway.access.directory.records import (
    GroupRecord,
    RecordT,
    UserRecord,
    decode_group,
    decode_user,
    encode,
)
from services.gateway.state import DIRECTORY

FIRST_RECORDS_S = 10.0
"""Longest wait of a request for a gateway that has just started to know the records."""
_CATCH_UP_S = 5.0
_ATTEMPTS = 20
"""Of a change: a provider sends few at once."""


class DirectoryStale(Unavailable):
    """It is not known who was deactivated meanwhile."""

    reason = "DIRECTORY_STALE"


class SubjectDeactivated(Unauthenticated):
    """The identity provider has deactivated or deleted the caller, or renamed them since they were given what they show."""

    reason = "SUBJECT_DEACTIVATED"


class GroupsChanged(Unauthenticated):
    """The caller has left a group while a stream was open."""

    reason = "GROUPS_CHANGED"


Record = UserRecord | GroupRecord | None


class Directory(FollowedBucket[Record]):
    """The records of all tenants. `open` makes it."""

    def __init__(
        self,
        bucket: KeyValue,
        naming: Naming,
        *,
        staleness_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(bucket, _decoded, _stale, staleness_s=staleness_s, clock=clock)
        self.naming = naming
        self._kept = bucket
        self._tenants: dict[str, People] = {}

    @classmethod
    async def open(
        cls, nats: Nats, naming: Naming, *, staleness_s: float, clock: Callable[[], float] = time.monotonic
    ) -> "Directory":
        """Raises Unavailable."""
        return cls(await KeyValue.open(nats, DIRECTORY.name), naming, staleness_s=staleness_s, clock=clock)

    def admit(self, caller: Principal, *, is_key: bool, given_at: float) -> Principal:
        """The caller with the groups that the provider has them in. Raises SubjectDeactivated, DirectoryStale."""
        self.require_fresh()
        standing = self.people(caller.tenant_id).standing(caller.subject)
        if not standing.admits(is_key=is_key, given_at=given_at):
            raise _deactivated(caller)
        if not standing.groups:
            return caller
        return replace(caller, groups=usable_groups({*caller.groups, *standing.groups}))

    async def ended(
        self, caller: Principal, let_in: frozenset[str], *, is_key: bool, given_at: float
    ) -> Unauthenticated:
        """Waits until the caller loses access, and returns the reason: they were deactivated, or left a group that the request
        began with. While the directory is stale, open requests go on."""

        def is_over() -> bool:
            standing = self.people(caller.tenant_id).standing(caller.subject)
            return (
                not standing.admits(is_key=is_key, given_at=given_at) or not let_in <= caller.groups | standing.groups
            )

        async with self._progress:
            await self._progress.wait_for(is_over)
        standing = self.people(caller.tenant_id).standing(caller.subject)
        if standing.admits(is_key=is_key, given_at=given_at):
            return GroupsChanged("you are not in all groups any more by which this was opened; open it again")
        return _deactivated(caller)

    def people(self, tenant_id: str) -> People:
        """The users and groups of a tenant."""
        return self._tenants.get(tenant_id) or People(self.naming)

    async def catch_up(self) -> int:
        """Returns the number of the newest change, once this gateway knows it and those before it. Raises DirectoryStale,
        Unavailable."""
        position = await self._kept.last_position()
        # Of the newest entry that is there: in a bucket that was emptied nothing would ever come at `position`.
        revision = await self._kept.last_revision()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CATCH_UP_S):
                await self._wait_followed(revision)
                return position
        raise DirectoryStale("the users and groups have not been read yet; try again in a few seconds")

    async def change(self, tenant_id: str, make: Callable[[People], RecordT]) -> RecordT:
        """Has `make` say what is to be kept, by what is known then: nothing else is written in between, so that no name is given
        twice. Returns it when this gateway knows. Raises what `make` raises, Aborted, DirectoryStale, Unavailable."""

        async def put(record: RecordT, position: int) -> int:
            return await self._kept.put_if_bucket_unchanged(_place(tenant_id, record), encode(record), position)

        return await self._write(tenant_id, make, put)

    async def remove_group(self, tenant_id: str, find: Callable[[People], GroupRecord]) -> None:
        """Deletes the group that `find` returns, by what is known then: nothing else is written in between. Returns when this
        gateway knows. Raises what `find` raises, Aborted, DirectoryStale, Unavailable."""

        async def delete(group: GroupRecord, position: int) -> int:
            return await self._kept.delete_if_bucket_unchanged(_place(tenant_id, group), position)

        await self._write(tenant_id, find, delete)

    async def _write(
        self, tenant_id: str, make: Callable[[People], RecordT], write: Callable[[RecordT, int], Awaitable[int]]
    ) -> RecordT:
        """Has `write` do what `make` says, at the bucket's position that `make` saw; again where that has moved on."""
        for _ in range(_ATTEMPTS):
            position = await self.catch_up()
            record = await asyncio.to_thread(make, self.people(tenant_id))  # a group may have thousands of members
            try:
                written = await write(record, position)
            except Aborted:
                continue
            await self.wait_written(written)
            return record
        raise Aborted(
            "users and groups are being changed all the while; try again in a moment", reason="DIRECTORY_BUSY"
        )

    def _note(self, key: str, entry: Entry | None) -> None:
        super()._note(key, entry)
        record = self._records.get(key)
        match key.split("."):
            case [_, "user", _] if entry is not None and record is None:
                return  # it cannot be read: who was known to have left stays out
            case [tenant_id, "user", user_id]:
                self._people_of(tenant_id).put_user(user_id, record if isinstance(record, UserRecord) else None)
            case [tenant_id, "group", group_id]:
                self._people_of(tenant_id).put_group(group_id, record if isinstance(record, GroupRecord) else None)
            case _:
                return  # a newer version's

    def _people_of(self, tenant_id: str) -> People:
        return self._tenants.setdefault(tenant_id, People(self.naming))


def _place(tenant_id: str, record: UserRecord | GroupRecord) -> str:
    if isinstance(record, UserRecord):
        return f"{tenant_id}.user.{record.user_id}"
    return f"{tenant_id}.group.{record.group_id}"


def _decoded(entry: Entry) -> Record:
    """None for what cannot be read: it is named in the log."""
    try:
        return (decode_user if ".user." in entry.key else decode_group)(entry.value or b"")
    except UNREADABLE as error:
        set_aside(DIRECTORY.name, entry.key, error)
        return None


def _deactivated(caller: Principal) -> SubjectDeactivated:
    return SubjectDeactivated(
        f"{caller.subject} was deactivated, deleted or renamed at the identity provider, and what was given to them before lets "
        "nobody in; ask an administrator there"
    )


def _stale(staleness_s: float) -> DirectoryStale:
    return DirectoryStale(
        f"for over {staleness_s:g} s this gateway has not heard who was deactivated, so it lets nobody in; it goes on by itself "
        "once the message store (NATS) answers again",
        retry_after_s=2.0,
    )
