"""The use cases of jobs that were given up: see them, and queue them again once the cause is removed."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from kit.access.principal import Principal
from kit.stores.collections import Role
from services.ingest.documents.access import Access, not_yours
from services.ingest.documents.models import DeadLetter, Document, Lane, Status
from services.ingest.documents.paging import age, decode_token, encode_token, page_length
from services.ingest.documents.revising import Reviser
from services.ingest.documents.uploads import naming
from services.ingest.errors import DeadLetterNotFound, RecordUnreadable, WrittenByNewerVersion
from services.ingest.ports import DeadLetterStore, DocumentStore
from services.ingest.work.models import JobCounts, RequeueOutcome

_log = structlog.get_logger()

REQUEUED_LIFE = timedelta(days=1)
"""How long a letter that was queued again is remembered, so that a second request gets the same answer."""

_AT_ONCE = 500
"""Letters a bulk call queues again: a call ends in seconds, whatever has piled up."""


@dataclass(frozen=True)
class BulkOutcome:
    """What became of many letters; `remaining` of those that match were not reached."""

    requeued: int
    dropped: int
    remaining: int


class DeadLetters:
    """A letter belongs to its document's collection: who may not read that does not know of the letter."""

    def __init__(
        self,
        letters: DeadLetterStore,
        records: DocumentStore,
        reviser: Reviser,
        access: Access,
        now: Callable[[], datetime],
    ) -> None:
        self._letters = letters
        self._records = records
        self._reviser = reviser
        self._access = access
        self._now = now

    async def page(
        self, caller: Principal, collection_id: str, reason: str, page_size: int, page_token: str
    ) -> tuple[list[DeadLetter], str]:
        """Letters, newest first, and the token of the next page. Raises BadPageToken."""
        after = decode_token(page_token) if page_token else None
        found = [letter async for letter in self._open(caller, collection_id, reason)]
        found.sort(key=_age, reverse=True)
        if after is not None:
            found = [letter for letter in found if _age(letter) < after]
        size = page_length(page_size)
        return found[:size], encode_token(_age(found[size - 1])) if len(found) > size else ""

    async def requeue(self, caller: Principal, dead_letter_id: str) -> tuple[RequeueOutcome, Document | None]:
        """Queues a letter's document again, under a fresh revision. Raises DeadLetterNotFound, NotYours."""
        known = naming.is_document_id(dead_letter_id)
        letter = await self._letters.get(caller.tenant_id, dead_letter_id) if known else None
        if letter is None or not await self._access.may_read(caller, letter.collection_id, letter.document_id):
            raise DeadLetterNotFound(
                f"there is no dead letter {dead_letter_id[:80]}; its document may have been deleted or read again since"
            )
        if not await self._access.edits(caller, letter.collection_id, letter.document_id):
            raise not_yours(letter.collection_id, Role.EDITOR)
        return await self._requeue(letter, Lane.INTERACTIVE)

    async def requeue_all(self, caller: Principal, collection_id: str, reason: str) -> BulkOutcome:
        """Queues the letters of a collection and reason again, all when these are empty, a few hundred a call. Letters of
        collections that the caller may not change are left."""
        found = self._open(caller, collection_id, reason)
        letters = [
            letter
            async for letter in found
            if await self._access.edits(caller, letter.collection_id, letter.document_id)
        ]
        outcomes = [await self._requeue_or_leave(letter) for letter in letters[:_AT_ONCE]]
        done = [outcome for outcome in outcomes if outcome is not None]
        requeued = done.count(RequeueOutcome.REQUEUED)
        return BulkOutcome(requeued, len(done) - requeued, len(letters) - len(done))

    async def counts(self, caller: Principal, collection_id: str) -> JobCounts:
        """Documents on their way and given up, over a collection or, when that is empty, over all that the caller may read."""
        queued: list[Document] = []
        processing = 0
        async for stored in self._records.all_of(caller.tenant_id):
            document = stored.document
            if document.status not in (Status.QUEUED, Status.PROCESSING):
                continue
            if collection_id and document.collection_id != collection_id:
                continue
            if not await self._access.sees(caller, document.collection_id, document.document_id):
                continue
            if document.status is Status.QUEUED:
                queued.append(document)
            processing += document.status is Status.PROCESSING
        letters = [letter async for letter in self._open(caller, collection_id, "")]
        oldest = min((document.updated_at for document in queued), default=None)
        return JobCounts(len(queued), processing, len(letters), oldest)

    async def sweep(self) -> int:
        """Drops letters, over all tenants, that nobody needs any more; returns how many are left to be queued again."""
        left = 0
        async for letter in self._letters.all_of("*"):
            forgotten = letter.requeued_at is not None and letter.requeued_at < self._now() - REQUEUED_LIFE
            if forgotten or (letter.requeued_at is None and await self._passed_by(letter) is not None):
                await self._letters.delete(letter)
            else:
                left += letter.requeued_at is None
        return left

    async def _requeue_or_leave(self, letter: DeadLetter) -> RequeueOutcome | None:
        """None when the document is one that this version cannot change: its letter stays, and the others get their turn."""
        try:
            return (await self._requeue(letter, Lane.BULK))[0]
        except (RecordUnreadable, WrittenByNewerVersion) as error:
            _log.warning("dead_letter_not_requeued", document_id=letter.document_id, error=error.message)
            return None

    async def _requeue(self, letter: DeadLetter, lane: Lane) -> tuple[RequeueOutcome, Document | None]:
        stored = await self._records.get(letter.tenant_id, letter.document_id)
        document = stored.document if stored and stored.document.status is not Status.DELETED else None
        if letter.requeued_at is not None:
            return RequeueOutcome.ALREADY_REQUEUED, document
        passed_by = await self._passed_by(letter)
        if passed_by is not None:
            await self._letters.delete(letter)
            return passed_by, document
        queued = await self._reviser.reindex(letter.tenant_id, letter.document_id, lane=lane)
        await self._letters.put(replace(letter, requeued_at=self._now()))
        return RequeueOutcome.REQUEUED, queued

    async def _passed_by(self, letter: DeadLetter) -> RequeueOutcome | None:
        """Why a letter has become pointless; None when it has not."""
        try:
            stored = await self._records.get(letter.tenant_id, letter.document_id)
        except RecordUnreadable:
            return None
        if stored is None or stored.document.status is Status.DELETED:
            return RequeueOutcome.DOCUMENT_DELETED
        if stored.document.revision_count > letter.revision_number:
            return RequeueOutcome.SUPERSEDED
        return None

    async def _open(self, caller: Principal, collection_id: str, reason: str) -> AsyncIterator[DeadLetter]:
        collection = naming.collection_id(collection_id) if collection_id else "*"
        async for letter in self._letters.all_of(caller.tenant_id, collection):
            is_asked_for = letter.requeued_at is None and reason in ("", letter.failure.reason)
            if is_asked_for and await self._access.sees(caller, letter.collection_id, letter.document_id):
                yield letter


def _age(letter: DeadLetter) -> tuple[str, str]:
    return age(letter.last_failed_at, letter.revision_id)
