"""Collections are made, found, shared and deleted by callers that kit.stores.collections allows. Each subject has a default one,
made when it is first asked for; a collection that is being deleted takes no more uploads."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from kit.access.principal import GROUP_PATTERN, SUBJECT_PATTERN, Principal, is_guest
from kit.errors import AlreadyExists
from kit.stores.collections import (
    DEFAULT_ID,
    Member,
    MemberKind,
    Role,
    Visibility,
    is_own_default,
    is_reserved,
    may_edit,
    may_manage,
    may_read,
    own_id,
)
from kit.vocabulary.memory_modes import MEMORY_MODES
from services.ingest.documents.access import check_unchanged, members_etag, not_yours
from services.ingest.documents.models import Collection
from services.ingest.documents.uploads import naming
from services.ingest.errors import (
    BadMember,
    BadMemoryMode,
    BadName,
    CollectionExists,
    CollectionNotFound,
    CollectionProtected,
    NotYours,
)
from services.ingest.ports import CollectionClearing, CollectionStore

_MAX_NAME_CHARS = 200
_MEMBERS_MAX = 200
"""Of one collection: every retriever has all records in memory, and groups stand for more people."""
_NAMES = {MemberKind.SUBJECT: re.compile(SUBJECT_PATTERN), MemberKind.GROUP: re.compile(GROUP_PATTERN)}


class Catalog:
    """The use cases of collections. `local`: the user whose default collection has the plain id."""

    def __init__(
        self, collections: CollectionStore, clearing: CollectionClearing, now: Callable[[], datetime], local: Principal
    ) -> None:
        self._collections = collections
        self._clearing = clearing
        self._now = now
        self._local = local

    async def create(
        self,
        caller: Principal,
        collection_id: str,
        name: str,
        visibility: Visibility = Visibility.PRIVATE,
        *,
        free_mark: str = "",
        again: bool = False,
        local_models_only: bool = False,
    ) -> Collection:
        """Makes a collection of the caller's; without an id one is made from the name. The id ends in "-" and `free_mark` where it
        is taken by a collection that the caller cannot see or that has another name, or where the name has nothing that an id may
        hold. `again`: one of the caller's that is there may be what an earlier attempt made, and is answered. Raises
        CollectionExists, BadName."""
        name = _clean(name)
        wanted = naming.collection_id(collection_id) if collection_id else naming.collection_id_from(name)
        if not wanted and name and free_mark:
            wanted = naming.marked_id("collection", free_mark)
        if not wanted:
            raise BadName("a new collection needs a name or an id; give one of them")
        made = Collection(
            caller.tenant_id,
            wanted,
            name or wanted,
            self._now(),
            caller.subject,
            visibility,
            local_models_only=local_models_only,
        )
        try:
            return await self._make(caller, made, again)
        except CollectionExists:
            if collection_id or not free_mark or await self._is_namesake(caller, made):
                raise
        return await self._make(caller, replace(made, collection_id=naming.marked_id(wanted, free_mark)), again)

    async def _make(self, caller: Principal, collection: Collection, again: bool) -> Collection:
        collection_id = collection.collection_id
        if is_reserved(collection_id, caller, self._local):
            raise _reserved(collection_id)
        if self._is_default(caller, collection_id):
            raise _taken(collection_id)
        try:
            await self._collections.create(collection)
        except AlreadyExists as error:
            there = await self._collections.get(caller.tenant_id, collection_id)
            is_own = there is not None and there.owner in ("", caller.subject)
            if again and there is not None and is_own and not there.deleting:
                return there
            if there is not None and there.deleting and may_read(caller, collection_id, there):
                raise CollectionExists(
                    f"collection {collection_id} is still being deleted; try again in a minute, or choose another id"
                ) from error
            raise _taken(collection_id) from error
        return collection

    async def _is_namesake(self, caller: Principal, made: Collection) -> bool:
        """Whether the collection that has the id already is one that the caller knows by the same name. Names whose id keeps
        little of them, as "Счета 2026", often make the same."""
        there = await self._collections.get(caller.tenant_id, made.collection_id)
        is_known = may_read(caller, made.collection_id, there)
        return is_known and (there is None or there.name.casefold() == made.name.casefold())

    async def get(self, caller: Principal, collection_id: str) -> Collection:
        """One that the caller may read. Raises CollectionNotFound."""
        found = await self._found(caller, naming.collection_id(collection_id))
        if found is None:
            raise _not_found(collection_id)
        if found.deleting:
            raise CollectionNotFound(
                f"collection {collection_id} is being deleted; use another, or create it again in a minute"
            )
        return found

    async def get_to_edit(self, caller: Principal, collection_id: str) -> Collection:
        """As `get`, for who is about to change what is in it. Raises CollectionNotFound, NotYours."""
        found = await self.get(caller, collection_id)
        if not may_edit(caller, found.collection_id, found):
            if is_guest(caller.subject):
                raise NotYours(
                    "guests only read what is shared with them; upload to your collection `default`, or sign in"
                )
            raise not_yours(collection_id, Role.EDITOR)
        return found

    async def get_to_manage(self, caller: Principal, collection_id: str) -> Collection:
        """As `get`, for who is about to share, rename or delete it. Raises CollectionNotFound, NotYours."""
        found = await self.get(caller, collection_id)
        if not may_manage(caller, found.collection_id, found):
            raise not_yours(collection_id, Role.OWNER)
        return found

    async def is_there(self, tenant_id: str, collection_id: str) -> bool:
        """Whether it still takes documents, as it is in the store at this moment."""
        if naming.is_default(collection_id):
            return True
        stored = await self._collections.get(tenant_id, collection_id)
        return stored is not None and not stored.deleting

    async def _found(self, caller: Principal, collection_id: str) -> Collection | None:
        found = self._collections.known(caller.tenant_id, collection_id)
        # What would be refused is looked up first: it may have been made or shared a moment ago by another process.
        if found is None or found.deleting or not may_read(caller, collection_id, found):
            found = await self._collections.get(caller.tenant_id, collection_id)
        if found is None and self._is_default(caller, collection_id):
            found = await self._made_default(caller, collection_id)
        return found if may_read(caller, collection_id, found) else None

    def _is_default(self, caller: Principal, collection_id: str) -> bool:
        return collection_id == DEFAULT_ID or is_own_default(collection_id, caller, self._local)

    async def _made_default(self, caller: Principal, collection_id: str) -> Collection | None:
        """The caller's default collection, which is made by this. One with the plain id that is not the caller's is nobody's yet,
        and until its owner comes what earlier versions put into it is everybody's."""
        if not is_own_default(collection_id, caller, self._local):
            return Collection(caller.tenant_id, collection_id, "Default", None)
        default = replace(self._default_of(caller), created_at=self._now())
        try:
            await self._collections.create(default)
        except AlreadyExists:
            return await self._collections.get(caller.tenant_id, collection_id)
        return default

    def _default_of(self, caller: Principal) -> Collection:
        return Collection(caller.tenant_id, own_id(DEFAULT_ID, caller, self._local), "Default", None, caller.subject)

    async def all_of(self, caller: Principal) -> list[Collection]:
        """Those that the caller may read, by id; their default one included."""
        default = self._default_of(caller)
        found = {default.collection_id: default}
        async for each in self._collections.all_of(caller.tenant_id):
            if not each.deleting and may_read(caller, each.collection_id, each):
                found[each.collection_id] = each
        return [found[key] for key in sorted(found)]

    async def update(
        self,
        caller: Principal,
        collection_id: str,
        name: str = "",
        visibility: Visibility | None = None,
        memory: str | None = None,
        local_models_only: bool | None = None,
    ) -> Collection:
        """Changes what is given. Who says who may read a collection that has no owner becomes its owner. Raises CollectionNotFound,
        NotYours, CollectionProtected, BadName, BadMemoryMode."""
        name = _clean(name)
        if memory and memory not in MEMORY_MODES:
            raise BadMemoryMode(f"{memory[:40]!r} is no mode of memory; use {', '.join(MEMORY_MODES)}")
        await self.get_to_manage(caller, collection_id)
        if visibility is Visibility.TENANT and naming.is_default(collection_id):
            raise CollectionProtected("a default collection stays private; make a collection to share its documents")

        def changed(stored: Collection) -> Collection:
            owner = stored.owner or (caller.subject if visibility else "")
            return replace(
                stored,
                name=name or stored.name,
                visibility=visibility or stored.visibility,
                owner=owner,
                memory=stored.memory if memory is None else memory,
                local_models_only=stored.local_models_only if local_models_only is None else local_models_only,
            )

        return await self._change(caller, collection_id, changed)

    async def members(self, caller: Principal, collection_id: str) -> Sequence[Member]:
        """Who has a role on it besides its owner, subjects before groups. Raises CollectionNotFound, NotYours."""
        return (await self.get_to_manage(caller, collection_id)).members

    async def set_member(
        self, caller: Principal, collection_id: str, member: Member, if_match: str = ""
    ) -> Sequence[Member]:
        """Gives a subject or a group a role, or another one; the members as they are now. Who shares a collection that has no owner
        becomes its owner. Raises BadMember, CollectionNotFound, NotYours, CollectionProtected, and AccessChanged where the members
        have another etag than `if_match`."""
        _check_member(member)
        await self.get_to_manage(caller, collection_id)
        if naming.is_default(collection_id):
            raise CollectionProtected("a default collection stays private; make a collection to share its documents")

        def changed(stored: Collection) -> Collection:
            members = _sorted([*_without(stored.members, member.kind, member.name), member])
            check_unchanged(if_match, members_etag(stored.members), members_etag(members))
            if (member.kind, member.name) == (MemberKind.SUBJECT, stored.owner):
                raise BadMember(f"{member.name} owns the collection and needs no other role")
            if len(members) > _MEMBERS_MAX:
                raise BadMember(
                    f"the collection has {_MEMBERS_MAX} members, as many as it may; share it with a group instead"
                )
            return replace(stored, owner=stored.owner or caller.subject, members=members)

        return (await self._change(caller, collection_id, changed)).members

    async def remove_member(
        self, caller: Principal, collection_id: str, kind: str, name: str, if_match: str = ""
    ) -> Sequence[Member]:
        """Takes the role away, if there is one; the members as they are now. Raises CollectionNotFound, NotYours, and AccessChanged
        where the members have another etag than `if_match`."""
        await self.get_to_manage(caller, collection_id)

        def changed(stored: Collection) -> Collection:
            members = _without(stored.members, kind, name)
            check_unchanged(if_match, members_etag(stored.members), members_etag(members))
            return replace(stored, members=members)

        return (await self._change(caller, collection_id, changed)).members

    async def delete(self, caller: Principal, collection_id: str) -> bool:
        """Nobody finds the collection from now on, and its documents are removed; False while that goes on. Raises
        CollectionNotFound, NotYours, CollectionProtected."""
        await self.get_to_manage(caller, collection_id)
        if naming.is_default(collection_id) and not is_guest(caller.subject):  # a guest does not come back to it
            raise CollectionProtected("a default collection cannot be deleted; delete its documents instead")
        await self._change(caller, collection_id, lambda stored: replace(stored, deleting=True))
        return await self._clearing.clear(caller.tenant_id, collection_id)

    async def _change(
        self, caller: Principal, collection_id: str, change: Callable[[Collection], Collection]
    ) -> Collection:
        """Raises CollectionNotFound, NotYours: by the record that is changed, whatever it was a moment ago."""

        def allowed(stored: Collection) -> Collection:
            if stored.deleting or not may_read(caller, collection_id, stored):
                raise _not_found(collection_id)
            if not may_manage(caller, collection_id, stored):
                raise not_yours(collection_id, Role.OWNER)
            return change(stored)

        changed = await self._collections.change(caller.tenant_id, collection_id, allowed)
        if changed is None:
            raise _not_found(collection_id)
        return changed


def _clean(name: str) -> str:
    """Raises BadName."""
    name = " ".join(name.split())
    if len(name) > _MAX_NAME_CHARS:
        raise BadName(f"the collection's name has {len(name)} characters; use at most {_MAX_NAME_CHARS}")
    return name


def _check_member(member: Member) -> None:
    """Raises BadMember."""
    if member.kind not in _NAMES or member.role not in list(Role):
        raise BadMember(f"a member is a subject or a group with one of the roles {', '.join(Role)}")
    if not _NAMES[MemberKind(member.kind)].fullmatch(member.name):
        raise BadMember(f"{member.name!r} is no {member.kind}; write the name as `groundwork whoami` shows it")


def _without(members: Sequence[Member], kind: str, name: str) -> tuple[Member, ...]:
    return tuple(each for each in members if (each.kind, each.name) != (kind, name))


def _sorted(members: Sequence[Member]) -> tuple[Member, ...]:
    """Subjects before groups, by name."""
    return tuple(sorted(members, key=lambda each: (each.kind == MemberKind.GROUP, each.name)))


def _not_found(collection_id: str) -> CollectionNotFound:
    return CollectionNotFound(f"there is no collection {collection_id}; create it first or use 'default'")


def _taken(collection_id: str) -> CollectionExists:
    """Says nothing about whose it is: the caller may not know of it."""
    return CollectionExists(f"collection {collection_id} exists already; choose another id")


def _reserved(collection_id: str) -> CollectionExists:
    """Whether there is one of this id does not change the words, so they tell nobody of it."""
    return CollectionExists(
        f"the id {collection_id} is kept for a collection that each user has of their own; choose another id"
    )
