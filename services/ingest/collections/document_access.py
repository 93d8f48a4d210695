"""The access list of a document, as editors of its collection see and set it."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from kit.access.principal import Principal
from kit.errors import Aborted
from kit.stores.document_access import DocumentAccess
from services.ingest.documents import life
from services.ingest.documents.access import (
    Access,
    access_etag,
    check_owned,
    check_unchanged,
    no_document,
)
from services.ingest.documents.catalog import Catalog
from services.ingest.documents.models import Document, Status, StoredDocument
from services.ingest.documents.uploads import naming
from services.ingest.ports import AccessLists, DocumentStore


class AccessDesk:
    """The use cases of access lists."""

    def __init__(
        self,
        documents: DocumentStore,
        access: Access,
        catalog: Catalog,
        lists: AccessLists,
        now: Callable[[], datetime],
    ) -> None:
        self._documents = documents
        self._access = access
        self._catalog = catalog
        self._lists = lists
        self._now = now

    async def get(self, caller: Principal, document_id: str) -> DocumentAccess | None:
        """The list; None for a document that has none. Raises DocumentNotFound, NotYours."""
        await self._found(caller, document_id)
        return await self._lists.get(caller.tenant_id, document_id)

    async def set(
        self,
        caller: Principal,
        document_id: str,
        make: Callable[[Document], DocumentAccess] | None,
        if_match: str = "",
    ) -> DocumentAccess | None:
        """Gives a document the list that `make` makes, or takes its list away; the list as it is now. It is in force when this
        returns, and at other processes a moment later. Raises DocumentNotFound, NotYours, AccessChanged where the list has another
        etag than `if_match`, BadAccess where the collection has no owner, and what `make` raises."""
        stored = await self._found(caller, document_id)
        access = make(stored.document) if make is not None else None
        if access is not None:
            check_owned(await self._catalog.get_to_edit(caller, stored.document.collection_id))
        wanted = access_etag(access)
        await self._lists.replace(
            caller.tenant_id, document_id, access, lambda listed: check_unchanged(if_match, access_etag(listed), wanted)
        )
        with suppress(Aborted):  # followers of the document hear of its other change as well
            await self._documents.update(life.note_access(stored.document, self._now()), stored.version)
        return access

    async def _found(self, caller: Principal, document_id: str) -> StoredDocument:
        naming.check_document_id(document_id)
        stored = await self._documents.get(caller.tenant_id, document_id)
        if stored is None or stored.document.status is Status.DELETED:
            raise no_document(document_id)
        await self._access.check_edit(caller, stored.document)
        return stored
