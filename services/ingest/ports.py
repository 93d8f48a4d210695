"""What ingestion needs from outside. Every method may raise Unavailable; every write is safe to repeat."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from kit.access.principal import Principal
from kit.jetstream.condition import Finding
from kit.jetstream.queues.backlog import Backlog
from kit.stores.document_access import DocumentAccess
from kit.stores.idempotency import Attempt
from services.ingest.documents.models import (
    Collection,
    DeadLetter,
    Document,
    IngestJob,
    NameClaim,
    Revision,
    StoredDocument,
    StoredFile,
)
from services.ingest.reading.models import Chunk, PreparedFile, PrepareRequest
from services.ingest.work.models import EmbeddingModel, RevisionCheck

Vectors = NDArray[np.float32]
"""float32 [n, dim], each row L2-normalised."""

Vector = NDArray[np.float32]
"""float32 [dim], one row of such."""


ChunkBatch = tuple[Sequence[Chunk], Vectors]
"""Chunks with their vectors, in the same order."""


class DocumentStore(Protocol):
    """Records of documents, with compare-and-set, and which document has which name.

    A record that cannot be read is left as it is: those who list or watch do not see it, the log and a metric do.
    """

    @property
    def restarts(self) -> int:
        """How often the store may have been started anew since this process came."""

    @property
    def unreadable(self) -> int:
        """Records found so far that cannot be read."""

    async def get(self, tenant_id: str, document_id: str) -> StoredDocument | None:
        """The record, a tombstone too; None when there is none. Raises RecordUnreadable."""

    async def create(self, document: Document) -> StoredDocument:
        """Raises AlreadyExists."""

    async def update(self, document: Document, version: int) -> StoredDocument:
        """Raises Aborted when the record no longer has `version`."""

    async def purge(self, tenant_id: str, document_id: str) -> None:
        """Forgets a tombstone."""

    def all_of(self, tenant_id: str) -> AsyncIterator[StoredDocument]:
        """The tenant's records, tombstones too; "*" means every tenant's."""

    def changed_since(self, version: int) -> AsyncIterator[StoredDocument]:
        """Records of all tenants that were written after the one of that version; all of them for 0. What is written while they are
        read may be missing: go on from what `last_version` was before."""

    async def last_version(self) -> int:
        """Of the record that was written last."""

    def watch(self, tenant_id: str) -> AsyncGenerator[StoredDocument | None, None]:
        """Current records, then None once, then every change until closed."""

    async def claim_name(self, tenant_id: str, collection_id: str, name: str, document_id: str) -> str:
        """Gives a name to a document unless it has one already. Returns whose it is."""

    async def pass_name(self, tenant_id: str, collection_id: str, name: str, old_id: str, new_id: str) -> str:
        """Gives a name of `old_id` to `new_id`. Returns whose it is then: another may have been first."""

    async def release_name(self, tenant_id: str, collection_id: str, name: str, document_id: str) -> None:
        """Frees a name if it still is that document's."""

    def claims(self) -> AsyncIterator[NameClaim]:
        """Which document has which name, over all tenants."""

    async def drop_claim(self, claim: NameClaim) -> None:
        """Frees a name, unless it was given to another since the claim was read."""


class CollectionStore(Protocol):
    """Collections, and what is known of them without asking the store. Who writes one knows it when the call returns."""

    def known(self, tenant_id: str, collection_id: str) -> Collection | None:
        """As this process knows it: a change by another arrives within milliseconds. None also for one whose record cannot be read.
        Raises CollectionsStale when changes may have been missed."""

    async def wait_rights_changed(self, caller: Principal, collection_id: str) -> None:
        """Returns when the caller has another role than before, or none, on a collection that was there, or on the given one."""

    async def get(self, tenant_id: str, collection_id: str) -> Collection | None:
        """As it is stored at this moment. Raises RecordUnreadable."""

    async def create(self, collection: Collection) -> None:
        """Raises AlreadyExists."""

    async def change(
        self, tenant_id: str, collection_id: str, change: Callable[[Collection], Collection]
    ) -> Collection | None:
        """Writes what `change` makes of the stored record, and returns it; None when there is none. `change` is called again where
        another writer was faster, and what it raises is raised."""

    async def delete(self, tenant_id: str, collection_id: str) -> None: ...

    async def was_deleted(self, tenant_id: str, collection_id: str) -> bool:
        """Whether it was, for certain: one that is merely not there may be a loss of the store's."""

    def all_of(self, tenant_id: str) -> AsyncIterator[Collection]:
        """The tenant's collections; "*" means every tenant's."""


class AccessLists(Protocol):
    """Access lists of documents. Who writes one knows it when the call returns."""

    def known(self, tenant_id: str, document_id: str) -> DocumentAccess | None:
        """As this process knows it; None for a document that has none. Raises DocumentAccessStale when changes may have been
        missed."""

    async def get(self, tenant_id: str, document_id: str) -> DocumentAccess | None:
        """As it is stored at this moment."""

    async def put(self, tenant_id: str, document_id: str, access: DocumentAccess) -> None:
        """Replaces the list of a document."""

    async def remove(self, tenant_id: str, document_id: str) -> None:
        """Harmless when repeated."""

    async def replace(
        self,
        tenant_id: str,
        document_id: str,
        access: DocumentAccess | None,
        check: Callable[[DocumentAccess | None], None],
    ) -> None:
        """Replaces the list, or takes it away, if `check` raises nothing for the very list that it replaces."""


class CollectionClearing(Protocol):
    """Removes what a collection that is being deleted still holds."""

    async def clear(self, tenant_id: str, collection_id: str) -> bool:
        """Has a marked collection emptied; says whether that is done already."""


class ReadableFile(Protocol):
    """A complete file, to be stored."""

    @property
    def sha256(self) -> str: ...

    def pieces(self, piece_bytes: int) -> AsyncIterator[bytes]:
        """The file from its beginning, in pieces of at most so many bytes."""


class FileStore(Protocol):
    """Uploaded files by tenant and content."""

    async def put(self, tenant_id: str, file: ReadableFile) -> None:
        """Stores a file that is not there yet."""

    async def get_to_file(self, tenant_id: str, sha256: str, path: Path) -> None:
        """Raises DataLoss when the file is missing or is not what its hash says."""

    async def exists(self, tenant_id: str, sha256: str) -> bool: ...

    async def delete(self, tenant_id: str, sha256: str) -> None: ...

    def all(self) -> AsyncIterator[StoredFile]:
        """Every tenant's files."""

    async def collect_remains(self, older_than: datetime) -> int:
        """Removes what files left behind before then that nobody can reach: pieces of those that were never stored to the end, and
        tombstones. Returns how many."""


class JobQueue(Protocol):
    """The queue of documents to read."""

    async def publish(self, job: IngestJob) -> None:
        """Queues a job, once per revision within the queue's window of deduplication."""

    async def has_job(self, job: IngestJob) -> bool:
        """Whether the job is in the queue, waiting or being worked on."""

    async def backlog(self) -> Backlog:
        """What is in the queue, over all tenants."""


class DeadLetterStore(Protocol):
    """Letters of jobs that were given up, durably."""

    async def put(self, letter: DeadLetter) -> None:
        """Keeps a letter; the one of the same revision is replaced."""

    async def get(self, tenant_id: str, revision_id: str) -> DeadLetter | None: ...

    async def delete(self, letter: DeadLetter) -> None:
        """Harmless when it is gone."""

    def all_of(self, tenant_id: str, collection_id: str = "*") -> AsyncIterator[DeadLetter]:
        """The tenant's letters, those queued again too; "*" means every tenant's, or every collection's."""


class Keys(Protocol):
    """Idempotency keys; see kit.stores.idempotency."""

    async def once(
        self,
        principal: Principal,
        operation: str,
        key: str,
        request: bytes,
        new_id: Callable[[], str],
        make: Callable[[Attempt], Awaitable[str]],
    ) -> str: ...


class Leases(Protocol):
    """Exclusive rights that vanish when their holder does."""

    def hold(self, key: str) -> AbstractAsyncContextManager["HeldLease"]:
        """Waits until `key` is free, then holds it, renewing it, for as long as the block runs."""


class HeldLease(Protocol):
    """A lease in hand."""

    def check(self) -> None:
        """Raises LeaseLost when it could not be renewed in time: another may hold it now."""


class Scratch(Protocol):
    """Room for bytes that are put aside while a document is in hand."""

    @property
    def size_bytes(self) -> int: ...

    async def append(self, data: bytes) -> int:
        """Returns where the data begins. Raises SpoolFull when the disk is full."""

    async def write(self, offset: int, data: bytes) -> None:
        """Raises SpoolFull when the disk is full."""

    async def read(self, offset: int, size_bytes: int) -> bytes: ...


class Preparer(Protocol):
    """Parses, cleans and chunks a file."""

    async def prepare(
        self, tenant_id: str, request: PrepareRequest, on_stage: Callable[[str], None], scratch: Scratch
    ) -> PreparedFile:
        """Puts the chunks of a tenant's file aside into `scratch`. Raises DocumentRejected, SpoolFull."""


class Embedder(Protocol):
    """The model server's embeddings."""

    async def model(self) -> EmbeddingModel: ...

    async def tokenizer_path(self) -> Path | None:
        """The embedder's tokenizer on local disk, or None when there is none."""

    async def embed(self, texts: Sequence[str]) -> tuple[Vectors, str]:
        """Vectors in the order of `texts`, and the model that made them."""


class SearchIndex(Protocol):
    """The retriever, as far as ingestion writes to it."""

    async def index(
        self,
        document: Document,
        revision: Revision,
        batches: AsyncIterator[ChunkBatch],
        chunk_count: int,
        model: str,
        *,
        to_come: int,
        activate_with: Sequence[str] | None = None,
    ) -> bool:
        """Writes all `chunk_count` chunks of a revision. Repeating it replaces them. `to_come` documents are
        under way and will be indexed too: the index may wait for them a moment.

        The revision stays invisible unless `activate_with` is given: then the index is asked to make it visible at once, with
        these languages, as `activate` does and with its errors. Returns whether it is visible."""

    async def activate(
        self, document: Document, revision: Revision, chunk_count: int, languages: Sequence[str]
    ) -> None:
        """Makes the revision the visible one. Raises FailedPrecondition: REVISION_INCOMPLETE, REVISION_SUPERSEDED."""

    async def delete(self, document_id: str) -> None:
        """Hides the document, then removes its chunks. Harmless when repeated."""

    def vectors(self, document_id: str, model: str) -> AsyncGenerator[tuple[Sequence[str], Vectors], None]:
        """Content hashes of the active revision and their vectors, some at a time; nothing when it has none of `model`."""

    def visible(self) -> AsyncGenerator[str, None]:
        """Ids of all the tenant's documents that searches can show."""

    async def check(self, revisions: Sequence[tuple[str, str]]) -> list[RevisionCheck]:
        """What the indexes hold of revisions, given as (document id, revision id), at most 200; in their order."""


class Forgetting(Protocol):
    """Who has copies of documents' text besides the indexes: the logs of runs quote it."""

    async def forget(self, document_id: str) -> None:
        """Has all copies erased within a minute. The wish is on disk when this returns. Harmless when repeated."""


class Condition(Protocol):
    """What was found wrong with the stored data, kept for an operator."""

    async def add(self, source: str, findings: Sequence[Finding]) -> None:
        """What happened, until a person has seen it."""

    async def set(self, source: str, findings: Sequence[Finding]) -> bool:
        """What a source finds now, instead of what it found before. Whether that is news."""

    async def findings(self, *, besides: str = "") -> list[Finding]:
        """All, or those of other sources than one."""
