"""Whether a caller may read or change what belongs to a collection. Whatever the caller may not read is refused in the very words
for what does not exist."""

from collections.abc import Awaitable, Callable

from kit.access.principal import Principal
from kit.stores import collections as rules
from services.ingest.documents.models import Collection, Document
from services.ingest.errors import DocumentNotFound, NotYours
from services.ingest.ports import CollectionStore

Check = Callable[[Document], Awaitable[None]]
"""Raises where the caller may not do to a document what they ask for."""

_Rule = Callable[[Principal, str, Collection | None], bool]


class Access:
    """The rights of callers to documents, by their collections. Nothing is asked of the store for what is allowed."""

    def __init__(self, collections: CollectionStore) -> None:
        self._collections = collections

    async def may_read(self, caller: Principal, collection_id: str) -> bool:
        """For one that the caller names: before a refusal it is looked up, whether it is there or not."""
        return await self._is_allowed(rules.may_read, caller, collection_id)

    async def sees(self, caller: Principal, collection_id: str) -> bool:
        """For listings and watches, which may meet thousands of collections: only one that is unknown here is looked up."""
        return await self._is_listed(rules.may_read, caller, collection_id)

    async def changes(self, caller: Principal, collection_id: str) -> bool:
        """As `sees`, whether the caller may change what is in the collection."""
        return await self._is_listed(rules.may_change, caller, collection_id)

    async def check_read(self, caller: Principal, document: Document) -> None:
        """Raises DocumentNotFound."""
        if not await self.may_read(caller, document.collection_id):
            raise no_document(document.document_id)

    async def check_change(self, caller: Principal, document: Document) -> None:
        """Raises DocumentNotFound, NotYours."""
        if await self._is_allowed(rules.may_change, caller, document.collection_id):
            return
        await self.check_read(caller, document)
        raise not_yours(document.collection_id)

    async def _is_allowed(self, rule: _Rule, caller: Principal, collection_id: str) -> bool:
        if rule(caller, collection_id, self._collections.known(caller.tenant_id, collection_id)):
            return True
        return rule(caller, collection_id, await self._collections.get(caller.tenant_id, collection_id))

    async def _is_listed(self, rule: _Rule, caller: Principal, collection_id: str) -> bool:
        known = self._collections.known(caller.tenant_id, collection_id)
        if known is None and not rule(caller, collection_id, None):
            known = await self._collections.get(caller.tenant_id, collection_id)
        return rule(caller, collection_id, known)


def no_document(document_id: str) -> DocumentNotFound:
    """The refusal of a document that is not there, or that the caller may not know of."""
    return DocumentNotFound(f"there is no document {document_id}; it may have been deleted")


def not_yours(collection_id: str) -> NotYours:
    """The refusal of a change by who may read only."""
    return NotYours(
        f"collection {collection_id} is shared with you to read; ask its owner, or an administrator, to change what is in it"
    )
