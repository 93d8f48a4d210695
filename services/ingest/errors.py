"""What can be wrong with a request or a file. DocumentRejected and its reasons end in the document's record, where people see
them; the others answer a call."""

from kit.errors import (
    Aborted,
    AlreadyExists,
    DataLoss,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
)

SUPPORTED = (
    "Supported are PDF, Word (docx), PowerPoint (pptx), Excel (xlsx), OpenDocument (odt, ods, odp), RTF, EPUB, HTML, Markdown, "
    "CSV, JSON (json, jsonl), XML, source code and any other readable text, notebooks (ipynb), subtitles (srt, vtt), e-mails (eml, "
    "msg, mbox), calendars (ics), pictures of text (png, jpg, tiff, webp, bmp, gif), exports of "
    "Telegram (result.json), and each of these packed by gzip (gz)"
)


class CollectionNotFound(NotFound):
    reason = "COLLECTION_NOT_FOUND"


class CollectionExists(AlreadyExists):
    """There is a collection of this id already."""

    reason = "COLLECTION_EXISTS"


class NotYours(PermissionDenied):
    """What the caller may read, and has too low a role to change."""

    reason = "NOT_YOURS"


class CollectionProtected(FailedPrecondition):
    """A default collection can neither be deleted nor shared."""

    reason = "COLLECTION_PROTECTED"


class DocumentNotFound(NotFound):
    """There is no such document in the collection, or not for this caller."""

    reason = "DOCUMENT_NOT_FOUND"


class BadName(InvalidArgument):
    """The name cannot be used."""

    reason = "BAD_NAME"


class BadMemoryMode(InvalidArgument):
    """There is no such mode of memory."""

    reason = "BAD_MEMORY_MODE"


class BadMember(InvalidArgument):
    """A collection cannot have this member."""

    reason = "BAD_MEMBER"


class BadAccess(InvalidArgument):
    """The access list cannot be used."""

    reason = "BAD_ACCESS"


class NameTaken(FailedPrecondition):
    """The name that a source's file or a kept file would have is another document's in the collection."""

    reason = "NAME_TAKEN"


class BadUpload(InvalidArgument):
    reason = "BAD_UPLOAD"


class UploadIncomplete(InvalidArgument):
    """The stream stopped before its end: the sender died or gave up."""

    reason = "UPLOAD_INCOMPLETE"


class BadPageToken(InvalidArgument):
    reason = "BAD_PAGE_TOKEN"


class FileTooLarge(InvalidArgument):
    """The file is larger than the server takes."""

    reason = "FILE_TOO_LARGE"


class FileUnreadable(InvalidArgument):
    """A file that is only read, and not kept, cannot be read; its reason is what the document's error would be."""

    reason = "FILE_UNREADABLE"


class ReadersBusy(ResourceExhausted):
    """As many files are read for callers who wait as a worker holds at once, of all or of one tenant."""

    reason = "READERS_BUSY"
    is_of_one_replica = True


class DocumentChanged(FailedPrecondition):
    """The document is not in the version that an upload was to replace."""

    reason = "DOCUMENT_CHANGED"


class AccessChanged(FailedPrecondition):
    """Somebody else has changed a list of who may do what since the caller read it."""

    reason = "ACCESS_CHANGED"


class UploadCorrupt(DataLoss):
    reason = "UPLOAD_CORRUPT"


class SpoolFull(ResourceExhausted):
    """The disk for incoming files is full: try again later."""

    reason = "SPOOL_FULL"
    is_of_one_replica = True


class FileInfected(InvalidArgument):
    """The scanner for viruses found something in the file, which was not stored."""

    reason = "FILE_INFECTED"


class ScannerAway(Unavailable):
    """The scanner for viruses does not answer, or could not scan the file. Nothing was stored: try again."""

    reason = "SCANNER_UNAVAILABLE"


class StorageQuotaExceeded(FailedPrecondition):
    """The caller, their API key, one of their groups, their tenant or all together store as much as they may. Delete documents, or
    have the limit raised: groundwork limits."""

    reason = "STORAGE_QUOTA_EXCEEDED"


class ModelChanged(Aborted):
    """The embedder was swapped while a document was embedded; the next try starts over with the new one."""

    reason = "EMBEDDING_MODEL_CHANGED"


class BadVectors(Internal):
    """The model server's answer does not fit the request."""

    reason = "EMBEDDING_MALFORMED"


class WrittenByNewerVersion(FailedPrecondition):
    """During a rolling upgrade: what the record says is for processes of the newer version only."""

    reason = "WRITTEN_BY_NEWER_VERSION"


class RecordUnreadable(DataLoss):
    """The bytes of a record are none. Nothing is done to it: a newer version or a person may know better."""

    reason = "RECORD_UNREADABLE"


class IllegalMove(Internal):
    """A change of status that documents/life.py does not know."""

    reason = "ILLEGAL_MOVE"


class SourceNotFound(NotFound):
    """There is no such source, or not for this caller."""

    reason = "SOURCE_NOT_FOUND"


class SourceFileNotFound(NotFound):
    """A source has no such file, or none that this caller may read."""

    reason = "SOURCE_FILE_NOT_FOUND"


class SourceFileNotTaken(FailedPrecondition):
    """A file of a source could not be indexed. `reason` says why, in the words that the list of failing files uses."""

    reason = "FILE_UNREADABLE"


class BadSource(InvalidArgument):
    """A source cannot be made or changed like this."""

    reason = "BAD_SOURCE"


class SourceAway(FailedPrecondition):
    """The source cannot be reached, or does not let us in. Its documents stay as they are; the next sync tries again."""

    reason = "SOURCE_AWAY"


class SourceBusy(ResourceExhausted):
    """The source wants to be asked later. Its documents stay as they are; the next sync begins when it may be asked again."""

    reason = "SOURCE_BUSY"


class SourceTooLarge(FailedPrecondition):
    """The source has more files than this installation takes."""

    reason = "SOURCE_TOO_LARGE"


class SourceEmpty(FailedPrecondition):
    """The source has no files any more, where it had some: its documents stay until a person says that this is right."""

    reason = "SOURCE_EMPTY"


class DeadLetterNotFound(NotFound):
    reason = "DEAD_LETTER_NOT_FOUND"


class WorkersDied(Internal):
    """One worker after the other ended while it had the document in hand."""

    reason = "WORKER_DIED"


class DocumentRejected(Exception):
    """The file cannot be read and trying again will not help. `message` is for the person who uploaded it."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class FileNotTaken(Exception):
    """A file cannot be taken from its source now. `message` is for the person whose source it is."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class Superseded(Exception):
    """The job's revision need not be made: the document is gone, has a newer revision, or is done."""
