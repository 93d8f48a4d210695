"""Who may read a file at its source may read its document, and nobody else of those who may read the collection.

Lists are narrowed at once. They are widened once the document is as it is at the source: readers who come in must not find what was
taken out for them.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime

from kit.access.principal import GROUP_PATTERN, SUBJECT_PATTERN
from kit.errors import Aborted
from kit.stores.document_access import DocumentAccess
from services.ingest.documents import life
from services.ingest.documents.access import access_list
from services.ingest.errors import BadAccess
from services.ingest.ports import AccessLists, DocumentStore
from services.ingest.sources.known import KnownFile
from services.ingest.sources.models import SourceFile, SourceRecord

_SUBJECT, _GROUP = re.compile(SUBJECT_PATTERN), re.compile(GROUP_PATTERN)


class SourceAccess:
    """Keeps the access lists of a source's documents."""

    def __init__(self, documents: DocumentStore, lists: AccessLists, now: Callable[[], datetime]) -> None:
        self._documents = documents
        self._lists = lists
        self._now = now

    async def of_upload(
        self, source: SourceRecord, file: SourceFile, known: KnownFile | None
    ) -> tuple[DocumentAccess | None, bool]:
        """The list with which a file is taken, None where it has or keeps none, and whether that is all the source says."""
        wanted = wanted_access(source, file)
        if known is None or file.readers is None:
            return wanted, True
        before = await self._lists.get(source.tenant_id, known.document_id)
        is_same_text = known.version == file.version and not known.is_pending
        if before is None or (is_same_text and wanted is not None):
            return wanted, True
        if wanted is None:
            return before, False
        shared = _shared(wanted, before)
        return shared, shared == wanted

    async def narrow(self, source: SourceRecord, files: Iterable[SourceFile], known: Mapping[str, KnownFile]) -> None:
        """Takes out of the lists of documents that are there who may not read the files any more. Their new content, which may
        never come, is not waited for."""
        for file in files:
            if file.readers is None or (there := known.get(file.key)) is None:
                continue
            wanted, place = wanted_access(source, file), (source.tenant_id, there.document_id)
            if wanted is None or wanted == self._lists.known(*place):
                continue
            before = await self._lists.get(*place)
            if before is None or _shared(wanted, before) != before:
                await self._set(*place, wanted if before is None else _shared(wanted, before))

    async def refresh(self, source: SourceRecord, files: Iterable[SourceFile], known: Mapping[str, KnownFile]) -> bool:
        """Brings the lists of documents that are there into step. Whether all are; those that are being indexed are only
        narrowed."""
        all_are = True
        for file in files:
            if file.readers is None or (there := known.get(file.key)) is None:
                continue
            wanted, place = wanted_access(source, file), (source.tenant_id, there.document_id)
            if wanted == self._lists.known(*place) or wanted == (before := await self._lists.get(*place)):
                continue
            lets_in_more = before is not None and (wanted is None or wanted.lets_in_more(before))
            if lets_in_more and there.is_pending:
                all_are = False
                await self.narrow(source, [file], known)
                continue
            await self._set(*place, wanted)
        return all_are

    async def _set(self, tenant_id: str, document_id: str, access: DocumentAccess | None) -> None:
        if access is None:
            await self._lists.remove(tenant_id, document_id)
        else:
            await self._lists.put(tenant_id, document_id, access)
        stored = await self._documents.get(tenant_id, document_id)
        if stored is not None:
            with suppress(Aborted):  # another change of the document reaches its followers as well
                await self._documents.update(life.note_access(stored.document, self._now()), stored.version)


def _shared(one: DocumentAccess, other: DocumentAccess) -> DocumentAccess:
    """Who is in both."""
    return DocumentAccess(one.collection_id, one.subjects & other.subjects, one.groups & other.groups)


def wanted_access(source: SourceRecord, file: SourceFile) -> DocumentAccess | None:
    """The access list that the source's readers of a file make. None: everybody who may read the collection. Readers whom
    nobody can be here are left out, and of too many none gets in."""
    if file.readers is None or file.readers.is_public:
        return None
    subjects = filter(_SUBJECT.fullmatch, file.readers.subjects)
    groups = filter(_GROUP.fullmatch, file.readers.groups)
    try:
        return access_list(source.collection_id, subjects, groups)
    except BadAccess:
        return access_list(source.collection_id, (), ())
