"""Sources as clients see them."""

from typing import Annotated, Literal

from groundwork.ingest.v1.ingest_pb2 import SourceSecrets
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr, StringConstraints

from services.gateway.schemas.documents.documents import DocumentError
from services.gateway.schemas.fields import WHOLE, CollectionId, Pattern, RequestBody
from services.gateway.schemas.times import Moment

SourceKindName = Annotated[
    str,
    Pattern("^[a-z][a-z0-9_-]{0,31}$", "is no kind of source; use 1 to 32 of a-z, 0-9, '-' and '_', a letter first"),
]
FieldName = Annotated[str, StringConstraints(min_length=1, max_length=64)]
FieldValue = Annotated[str, StringConstraints(max_length=2000)]
SecretValue = Annotated[SecretStr, Field(min_length=1, max_length=8000)]
Every = Annotated[int, Field(ge=60, le=604_800), WHOLE]


class SourceSync(BaseModel):
    """How a sync went, or goes."""

    began_at: Moment | None = Field(description="When it began; null of one that has ended.")
    ended_at: Moment | None = Field(description="When it ended; null while it is under way.")
    total_count: int = Field(description="Files to be taken or removed, as far as known.")
    done_count: int = Field(description="Those that are done, whatever became of them.")
    added_count: int = Field(description="New files.")
    changed_count: int = Field(description="Files with another content than before.")
    moved_count: int = Field(description="Files with another name than before: their documents keep their ids.")
    removed_count: int = Field(description="Files that are gone, and their documents with them.")
    failed_count: int = Field(description="Files that could not be taken.")
    remaining_s: float | None = Field(
        default=None, description="Seconds that are left by its pace so far; null where nobody can tell."
    )


class FailingFile(BaseModel):
    """A file of a source that could not be taken or read."""

    path: str = Field(description="Names it at the source.")
    reason: str = Field(description="A constant UPPER_SNAKE word.", examples=["FILE_UNREADABLE"])
    message: str = Field(description="What happened and what to do, for a person.")
    document_id: str | None = Field(description="Its document; null where there is none.")


class SourceAccess(BaseModel):
    """How who may read the documents of a source follows who may read its files."""

    every_s: float = Field(description="Seconds after which the source is asked again, also while it is paused.")
    refreshed_at: Moment | None = Field(
        description="When the source last said who may read its files; null while its syncs alone have."
    )
    error: DocumentError | None = Field(description="Why it did not say it since.")
    withheld: bool = Field(
        description="Whether it did not say it for too long. Owners of the collection alone read its documents until it does."
    )


class Source(BaseModel):
    """A place from which a collection is filled, and with which it stays in step."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "5d0c7be9f2c1",
                "kind": "folder",
                "name": "contracts",
                "collection_id": "default",
                "settings": {"folder": "contracts"},
                "secret_names": [],
                "every_s": 900,
                "owner": "ann",
                "created_at": "2026-01-31T12:00:00.000Z",
                "state": "waiting",
                "error": None,
                "sync": None,
                "next_sync_at": None,
                "file_count": 12,
                "pending_count": 0,
                "failing_count": 1,
                "access": None,
                "failing": [
                    {
                        "path": "2024/scan.pdf",
                        "reason": "FILE_UNREADABLE",
                        "message": "it cannot be read (Permission denied); give this service the right to read it",
                        "document_id": None,
                    }
                ],
            }
        }
    )

    id: str = Field(validation_alias=AliasChoices("id", "source_id"), description="Unique within the tenant.")
    kind: str = Field(description="Which kind of place it is.")
    name: str = Field(description="The folder of its documents' names.")
    collection_id: str | None = Field(description="Collection that it fills.")
    settings: dict[str, str] = Field(description="Where it is, in the words of its kind.")
    secret_names: list[str] = Field(description="Names of its secrets. Their values are shown to nobody.")
    every_s: float = Field(description="Seconds from the end of a sync to the next.")
    owner: str = Field(description="Subject who made it.")
    created_at: Moment | None = Field(description="When it was made.")
    state: Literal["waiting", "syncing", "paused", "failed", "removing", "unknown"] = Field(
        description="`failed`: the last sync failed as a whole, and `error` says why; the next comes by the schedule."
    )
    error: DocumentError | None = Field(description="Why the last sync as a whole failed.")
    sync: SourceSync | None = Field(description="The sync under way, else the last one.")
    next_sync_at: Moment | None = Field(description="When the next sync is due; null while one is.")
    file_count: int = Field(description="Documents from it.")
    pending_count: int = Field(description="Those that are being indexed.")
    failing_count: int = Field(description="Files that could not be taken or read.")
    failing: list[FailingFile] = Field(
        description="Some of them by path, at most 400. Empty in a list of sources: ask for the source."
    )
    access: SourceAccess | None = Field(
        description="How who may read its documents follows the source; null where the collection says it."
    )


class SourceList(BaseModel):
    """Sources."""

    sources: list[Source] = Field(description="By collection and name.")


class NewSource(RequestBody):
    """A source to be made."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "kind": "folder",
                "collection_id": "default",
                "settings": {"folder": "contracts", "only": "*.pdf"},
            }
        }
    )

    kind: SourceKindName = Field(
        description="Which kind of place it is; docs/sources.md lists them with their settings."
    )
    collection_id: CollectionId = Field(default="default", description="Collection that it fills.")
    name: str = Field(
        default="",
        max_length=64,
        description="The folder of its documents' names; empty: one is chosen by its settings.",
    )
    settings: dict[FieldName, FieldValue] = Field(
        default_factory=dict, max_length=20, description="Where it is, in the words of its kind."
    )
    secrets: dict[FieldName, SecretValue] = Field(
        default_factory=dict,
        max_length=10,
        description="What it takes to get in. They are stored sealed and shown to nobody.",
    )
    every_s: Every = Field(default=900, description="Seconds from the end of a sync to the next.")

    def secret_values(self) -> dict[str, str]:
        """For the ingest service."""
        return {name: value.get_secret_value() for name, value in self.secrets.items()}


class ChangedSource(RequestBody):
    """What is to be another than before; what is left out stays as it is."""

    model_config = ConfigDict(json_schema_extra={"example": {"paused": True}})

    every_s: Every | None = Field(default=None, description="Seconds from the end of a sync to the next.")
    paused: bool | None = Field(default=None, description="Whether nothing happens until it is let go on.")
    secrets: dict[FieldName, SecretValue] | None = Field(
        default=None, max_length=10, description="Instead of all that it had."
    )

    def secret_values(self) -> SourceSecrets | None:
        """For the ingest service."""
        if self.secrets is None:
            return None
        return SourceSecrets(values={name: value.get_secret_value() for name, value in self.secrets.items()})


class SourceRun(RequestBody):
    """A sync that is to begin now."""

    model_config = ConfigDict(json_schema_extra={"example": {}})

    accept_empty: bool = Field(
        default=False, description="Whether all its documents may be removed, where it has no files any more."
    )
