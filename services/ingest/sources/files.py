"""Takes one file of a source when a caller asks for it by its path, so that nobody has to wait for the next sync."""

import asyncio
from collections.abc import Sequence
from difflib import get_close_matches

from kit.access.principal import Principal
from kit.errors import GroundworkError
from services.ingest.documents.access import Access
from services.ingest.documents.catalog import Catalog
from services.ingest.documents.deletion import Deletion
from services.ingest.documents.models import Document, Status
from services.ingest.errors import (
    BadSource,
    FileNotTaken,
    SourceAway,
    SourceFileNotFound,
    SourceFileNotTaken,
    SourceNotFound,
)
from services.ingest.ports import DocumentStore
from services.ingest.sources.comparing import is_wanted, name_of_document
from services.ingest.sources.known import KnownFile, KnownFiles
from services.ingest.sources.models import SourceFile, SourceListing, SourceRecord
from services.ingest.sources.opening import SourceOpener
from services.ingest.sources.ports import SourceReader, SourceStore
from services.ingest.sources.source_access import SourceAccess, wanted_access
from services.ingest.sources.taking import FileTaking

_LISTING_S = 20.0
"""A person waits. What takes longer is a site, or a very large mailbox: its schedule takes the file."""
_NAMED = 20
"""Sources that an error names."""
_ALIKE = 5
"""Paths like the one that is unknown, which an error names."""


class SourceFiles:
    """Files of sources by their paths. A path that a caller may not know of is as unknown as one that is not there."""

    def __init__(
        self,
        sources: SourceStore,
        opener: SourceOpener,
        known: KnownFiles,
        documents: DocumentStore,
        catalog: Catalog,
        access: Access,
        source_access: SourceAccess,
        taking: FileTaking,
        deletion: Deletion,
    ) -> None:
        self._sources = sources
        self._opener = opener
        self._known = known
        self._documents = documents
        self._catalog = catalog
        self._access = access
        self._source_access = source_access
        self._taking = taking
        self._deletion = deletion

    async def index(self, caller: Principal, path: str, collection_ids: Sequence[str] = ()) -> Document:
        """The document of the file at `path`, which is `<name of the source>/<path there>`, as the file is now. Raises
        SourceNotFound, SourceFileNotFound, SourceFileNotTaken, BadSource, NotYours, SourceAway, SourceBusy."""
        source = await self._source(caller, path, collection_ids)
        await self._catalog.get_to_edit(caller, source.collection_id)
        if source.paused:
            raise BadSource(f"the source {source.name} is paused; resume it first")
        async with self._opener.open(source) as reader:
            known = await self._known.of(source.place)
            listing = await self._listed(source, reader)
            file = await self._file(caller, source, path, listing, known)
            there = known.get(file.key)
            if there is not None and not is_wanted(source, file, known, retries=True):
                stored = await self._documents.get(source.tenant_id, there.document_id)
                if stored is not None and stored.document.status is not Status.DELETED:
                    return stored.document
            await self._source_access.narrow(source, [file], known)
            try:
                taken = await self._taking.take(source, reader, file, there, {})
            except FileNotTaken as error:
                raise SourceFileNotTaken(f"{path} cannot be taken: {error.message}", reason=error.reason) from error
        await self._check_source_survived(source, taken.document)
        return taken.document

    async def _source(self, caller: Principal, path: str, collection_ids: Sequence[str]) -> SourceRecord:
        """The source that the path begins with. Raises SourceNotFound, BadSource."""
        name, _, rest = path.partition("/")
        readable: dict[str, bool] = {}
        there: list[SourceRecord] = []
        async for record in self._sources.all_of(caller.tenant_id):
            collection_id = record.collection_id
            if record.deleting or (collection_ids and collection_id not in collection_ids):
                continue
            if collection_id not in readable:
                readable[collection_id] = await self._may_read(caller, collection_id)
            if readable[collection_id]:
                there.append(record)
        found = [record for record in there if record.name == name]
        if not found:
            names = ", ".join(sorted({record.name for record in there})[:_NAMED]) or "none"
            raise SourceNotFound(
                f"there is no source {name[:80]!r} for you here; the sources are: {names}. Begin the path with the name of one, "
                "as in contracts/2024/plan.pdf"
            )
        if len(found) > 1:
            places = ", ".join(sorted(record.collection_id for record in found)[:_NAMED])
            raise BadSource(f"several collections have a source {name}: {places}; say which of them to read")
        if not rest or ".." in rest.split("/"):
            raise SourceFileNotFound(
                f"{path[:200]!r} names no file of the source {name}; give the path of a file below the source, without '..'"
            )
        return found[0]

    async def _may_read(self, caller: Principal, collection_id: str) -> bool:
        try:
            await self._catalog.get(caller, collection_id)
        except GroundworkError:
            return False
        return True

    async def _listed(self, source: SourceRecord, reader: SourceReader) -> SourceListing:
        try:
            async with asyncio.timeout(_LISTING_S):
                return await reader.list_changes("")
        except TimeoutError as error:
            raise SourceAway(
                f"the source {source.name} is not listed within {_LISTING_S:g} seconds; its next sync takes the file, or start one"
            ) from error

    async def _file(
        self,
        caller: Principal,
        source: SourceRecord,
        path: str,
        listing: SourceListing,
        known: dict[str, KnownFile],
    ) -> SourceFile:
        """Raises SourceFileNotFound."""
        key = path.partition("/")[2]
        by_path = {name_of_document(source, file): file for file in listing.files}
        file = by_path.get(path) or next((each for each in listing.files if each.key == key), None)
        if file is not None and await self._sees(caller, source, file, known):
            return file
        alike = [
            name
            for name in get_close_matches(path, by_path, n=2 * _ALIKE)
            if await self._sees(caller, source, by_path[name], known)
        ]
        like = (
            f"Like it are: {', '.join(alike[:_ALIKE])}"
            if alike
            else "See the paths of what is indexed in the list of documents"
        )
        raise SourceFileNotFound(f"the source {source.name} has no file {key[:200]!r} for you. {like}")

    async def _sees(
        self, caller: Principal, source: SourceRecord, file: SourceFile, known: dict[str, KnownFile]
    ) -> bool:
        """Whether the caller may read the file's document, and the file at its source."""
        there = known.get(file.key)
        if there is not None and not await self._access.sees(caller, source.collection_id, there.document_id):
            return False  # its list may be a narrower one
        return await self._access.would_see(caller, source.collection_id, wanted_access(source, file))

    async def _check_source_survived(self, source: SourceRecord, document: Document) -> None:
        """A source that was removed meanwhile leaves no document. Raises SourceNotFound."""
        now = await self._sources.get(*source.place)
        if now is not None and not now.deleting:
            return
        stored = await self._documents.get(source.tenant_id, document.document_id)
        if stored is not None and stored.document.status is not Status.DELETED:
            await self._deletion.delete_all(source.tenant_id, [stored])
        raise SourceNotFound(f"the source {source.name} has been removed meanwhile")
