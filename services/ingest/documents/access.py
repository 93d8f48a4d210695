"""Whether a caller may read or change a document, by the caller's role on its collection and by its access list. Whatever the
caller may not read is refused in the very words for what does not exist."""

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterable

from kit.access.principal import GROUP_PATTERN, SUBJECT_PATTERN, Principal
from kit.stores.collections import Member, Role, role_of
from kit.stores.document_access import DocumentAccess
from services.ingest.documents.models import Collection, Document
from services.ingest.errors import AccessChanged, BadAccess, DocumentNotFound, NotYours
from services.ingest.ports import AccessLists, CollectionStore

_LISTED_MAX = 1000
"""Subjects and groups of one list: every retriever has all lists in memory."""
_SUBJECT, _GROUP = re.compile(SUBJECT_PATTERN), re.compile(GROUP_PATTERN)

Check = Callable[[Document], Awaitable[None]]
"""Raises where the caller may not do to a document what they ask for."""


class Access:
    """The rights of callers to documents. Nothing is asked of the stores for what is allowed."""

    def __init__(self, collections: CollectionStore, lists: AccessLists) -> None:
        self._collections = collections
        self._lists = lists

    async def may_read(self, caller: Principal, collection_id: str, document_id: str) -> bool:
        """For a document that the caller names: before a refusal its collection and list are looked up, whether they are there or
        not."""
        known = role_of(caller, collection_id, self._collections.known(caller.tenant_id, collection_id))
        if known is not None and self._is_open(caller, known, self._lists.known(caller.tenant_id, document_id)):
            return True
        stored = role_of(caller, collection_id, await self._collections.get(caller.tenant_id, collection_id))
        listed = await self._lists.get(caller.tenant_id, document_id)
        return stored is not None and self._is_open(caller, stored, listed)

    async def sees(self, caller: Principal, collection_id: str, document_id: str) -> bool:
        """For listings and watches, which may meet thousands of documents: only a collection that is unknown here is looked up."""
        role = await self._listed_role(caller, collection_id)
        return role is not None and self._is_open(caller, role, self._lists.known(caller.tenant_id, document_id))

    async def would_see(self, caller: Principal, collection_id: str, listed: DocumentAccess | None) -> bool:
        """As `sees`, for a document that would have this access list."""
        role = await self._listed_role(caller, collection_id)
        return role is not None and self._is_open(caller, role, listed)

    async def edits(self, caller: Principal, collection_id: str, document_id: str) -> bool:
        """As `sees`, whether the caller may change the document."""
        role = await self._listed_role(caller, collection_id)
        is_editor = role is not None and role.includes(Role.EDITOR)
        return is_editor and await self.sees(caller, collection_id, document_id)

    async def check_read(self, caller: Principal, document: Document) -> None:
        """Raises DocumentNotFound."""
        if not await self.may_read(caller, document.collection_id, document.document_id):
            raise no_document(document.document_id)

    async def check_edit(self, caller: Principal, document: Document) -> None:
        """Raises DocumentNotFound, NotYours."""
        await self.check_read(caller, document)
        known = self._collections.known(caller.tenant_id, document.collection_id)
        role = role_of(caller, document.collection_id, known)
        if role is None or not role.includes(Role.EDITOR):
            stored = await self._collections.get(caller.tenant_id, document.collection_id)
            role = role_of(caller, document.collection_id, stored)
        if role is None or not role.includes(Role.EDITOR):
            raise not_yours(document.collection_id, Role.EDITOR)

    def _is_open(self, caller: Principal, role: Role, listed: DocumentAccess | None) -> bool:
        return listed is None or role is Role.OWNER or listed.covers(caller)

    async def _listed_role(self, caller: Principal, collection_id: str) -> Role | None:
        known = self._collections.known(caller.tenant_id, collection_id)
        if known is None and role_of(caller, collection_id, None) is None:
            known = await self._collections.get(caller.tenant_id, collection_id)
        return role_of(caller, collection_id, known)


def access_list(collection_id: str, subjects: Iterable[str], groups: Iterable[str]) -> DocumentAccess:
    """The list of a document of a collection. Raises BadAccess."""
    access = DocumentAccess(collection_id, frozenset(subjects), frozenset(groups))
    if len(access.subjects) + len(access.groups) > _LISTED_MAX:
        raise BadAccess(f"an access list has at most {_LISTED_MAX} subjects and groups; name a group for many subjects")
    for alphabet, what, names in ((_SUBJECT, "subject", access.subjects), (_GROUP, "group", access.groups)):
        for name in sorted(names):
            if not alphabet.fullmatch(name):
                raise BadAccess(f"{name[:200]!r} is no {what}; write the name as GET /v1/me shows it")
    return access


def check_owned(collection: Collection) -> None:
    """Before a document of the collection gets a list: where everybody is an owner, it would hide nothing. Raises BadAccess."""
    if not collection.owner:
        raise BadAccess(
            f"collection {collection.collection_id} has no owner, so everybody owns it and reads all documents in it, whatever "
            "list they have; share it or set its visibility first, which makes you its owner, or use a collection of your own"
        )


def access_etag(listed: DocumentAccess | None) -> str:
    """Names the state of a document's list; None is a document without one."""
    return _etag(None if listed is None else [sorted(listed.subjects), sorted(listed.groups)])


def members_etag(members: Iterable[Member]) -> str:
    """Names the state of a collection's members."""
    return _etag(sorted([each.kind, each.name, each.role] for each in members))


def check_unchanged(if_match: str, etag: str, wanted: str) -> None:
    """Before a change of a list that a caller has read: two who change it at once must not undo each other's. `etag` is that of
    the list as stored, `wanted` of the list as changed: where both are the same, a call whose answer was lost is repeated. Raises
    AccessChanged."""
    if if_match and etag not in {if_match, wanted}:
        raise AccessChanged(
            "somebody else has changed this list since you read it, and nothing was changed now; read it again, and make your "
            "change to the list as it is now",
            etag=etag,
        )


def _etag(state: object) -> str:
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()[:32]


def no_document(document_id: str) -> DocumentNotFound:
    """The refusal of a document that is not there, or that the caller may not know of."""
    return DocumentNotFound(f"there is no document {document_id}; it may have been deleted")


def not_yours(collection_id: str, needed: Role) -> NotYours:
    """The refusal of a change by a caller who may read the collection and has less than the role `needed`."""
    return NotYours(
        f"this takes the role {needed} on collection {collection_id}; ask an owner of the collection, or an administrator, for it"
    )
