"""Compares what a source lists with the documents that there are: which files have to be read, and which are gone."""

from contextlib import suppress
from dataclasses import dataclass

from services.ingest.documents.uploads import naming
from services.ingest.errors import BadName, FileNotTaken
from services.ingest.sources.known import KnownFile
from services.ingest.sources.models import SourceFile, SourceListing, SourceRecord


def is_wanted(source: SourceRecord, file: SourceFile, known: dict[str, KnownFile], *, retries: bool) -> bool:
    """Whether a file has to be read: it is new, or has another name, or may have changed, or a person has files tried again that
    could not be read."""
    before = known.get(file.key)
    if (
        before is None
        or not file.version
        or before.version != file.version
        or before.name != name_of_document(source, file)
    ):
        return True
    return retries and before.is_rejected


def name_of_document(source: SourceRecord, file: SourceFile) -> str:
    """Of the file's document."""
    name = f"{source.name}/{file.name or file.key}"
    with suppress(BadName):  # the upload says what is wrong with it
        return naming.file_name(name)
    return name


def gone_keys(listing: SourceListing, known: dict[str, KnownFile]) -> list[str]:
    """Keys of files that have documents and are not at the source any more."""
    if not listing.is_complete:
        return [key for key in listing.gone if key in known]
    there = {file.key for file in listing.files}
    unseen = [problem.key for problem in listing.problems]
    return [
        key
        for key in known
        if key not in there and not any(key == each or key.startswith(f"{each}/") for each in unseen)
    ]


@dataclass
class Renaming:
    """Finds the document that a file had under another name."""

    known: KnownFile | None
    """The file, where the source still has it under the same key."""
    name: str
    """Of the document from now on."""
    left_behind: dict[str, list[str]]
    """Documents by content whose files are gone; what is found is taken out."""
    document_id: str = ""
    """What was found."""

    def find(self, sha256: str) -> str:
        """For a file of that content; empty where there is none. Raises FileNotTaken."""
        if self.known is not None and self.known.name != self.name:
            if self.known.sha256 != sha256:
                raise FileNotTaken("FILE_CHANGING", "it changed while it was read; the next sync reads it again")
            self.document_id = self.known.document_id
        elif self.known is None and self.left_behind.get(sha256):
            self.document_id = self.left_behind[sha256].pop()
        return self.document_id
