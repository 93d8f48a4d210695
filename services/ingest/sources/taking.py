"""Takes a file of a source as a document, with its origin and, where the source says who may read it, with that access list."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from kit.access.principal import Principal
from services.ingest.documents.models import Document, Lane, Origin
from services.ingest.documents.uploads.upload import Upload, Uploads
from services.ingest.sources.comparing import Renaming, name_of_document
from services.ingest.sources.known import KnownFile
from services.ingest.sources.models import SourceFile, SourceRecord
from services.ingest.sources.ports import SourceReader
from services.ingest.sources.source_access import SourceAccess


@dataclass(frozen=True)
class TakenFile:
    """A file that has been taken."""

    document: Document
    was_moved: bool
    """Whether the document had another key at the source before."""
    is_whole: bool
    """Whether the document has all that the source says. Otherwise a later sync sets the rest."""


class FileTaking:
    """Takes one file at a time. Of two takers of one file each still ends in the same document."""

    def __init__(self, uploads: Uploads, access: SourceAccess, now: Callable[[], datetime]) -> None:
        self._uploads = uploads
        self._access = access
        self._now = now

    async def take(
        self,
        source: SourceRecord,
        reader: SourceReader,
        file: SourceFile,
        known: KnownFile | None,
        left_behind: dict[str, list[str]],
    ) -> TakenFile:
        """Raises FileNotTaken, SourceAway, SourceBusy, and what an upload raises."""
        upload, is_whole = await self._upload_of(source, file, known)
        renaming = Renaming(known, upload.name, left_behind)
        document = await self._uploads.take(source.tenant_id, upload, reader.fetch(file), renaming.find)
        return TakenFile(document, known is None and document.document_id == renaming.document_id, is_whole)

    async def _upload_of(self, source: SourceRecord, file: SourceFile, known: KnownFile | None) -> tuple[Upload, bool]:
        access, is_whole = await self._access.of_upload(source, file, known)
        name = name_of_document(source, file)
        if known is not None and known.name != name and known.version != file.version:
            name, is_whole = known.name, False  # first its content, then its name
        # As it is now, before the first byte is read.
        version = file.version if self._now().timestamp() >= file.settled_at else ""
        upload = Upload(
            source.collection_id,
            name,
            0,
            "",
            file.metadata,
            encoding=file.encoding,
            lane=Lane.BULK,
            origin=Origin(source.source_id, file.key, version),
            access=access,
            counted_for=Principal(source.tenant_id, source.owner),
        )
        return upload, is_whole
