"""Documents and collections as clients see them."""

from typing import Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator

from kit.vocabulary.memory_modes import MemoryMode
from services.gateway.schemas.fields import CollectionFilter, MemberName, RequestBody, Title
from services.gateway.schemas.times import Moment

DocumentStatus = Literal["queued", "processing", "ready", "failed", "deleted", "unknown", "kept"]
Visibility = Literal["private", "tenant"]
Role = Literal["viewer", "editor", "owner"]
MemberKind = Literal["subject", "group"]
ListedStatus = Literal["queued", "processing", "ready", "failed", "kept"]


class DocumentError(BaseModel):
    """Why a document failed."""

    reason: str = Field(description="A constant UPPER_SNAKE word.", examples=["PDF_ENCRYPTED"])
    message: str = Field(description="What happened and what to do, for a person.")


class PageStatus(BaseModel):
    """State of one page."""

    page: int | None = Field(description="1-based.")
    status: str = Field(description="`text`, `empty` or `failed`.")


class DocumentSource(BaseModel):
    """The file of a source that a document is."""

    id: str = Field(validation_alias=AliasChoices("id", "source_id"), description="The source's id.")
    path: str = Field(description="Names the file at the source.")


class IngestReport(BaseModel):
    """What happened on the way from file to index."""

    page_count: int = Field(default=0, description="Pages seen; 0 where the format has none.")
    chunk_count: int = Field(default=0, description="Chunks indexed.")
    token_count: int = Field(default=0, description="Tokens embedded.")
    embed_batch_count: int = Field(default=0, description="Embed calls.")
    stage_seconds: dict[str, float | None] = Field(default_factory=dict, description="Seconds by stage.")
    slowest_stage: str = Field(default="", description="The longest stage.")
    pages: list[PageStatus] = Field(default_factory=list, description="One entry a page.")
    warnings: list[str] = Field(default_factory=list, description="Things a person may want to know.")
    attempts: int = Field(default=0, description="Deliveries of the job so far.")
    reused_chunk_count: int = Field(
        default=0, description="Chunks that had not changed and kept the vectors of the version before."
    )
    chunker: str = Field(default="", description="Chunking strategy: `recursive`, `headings`, `rows` or `pages`.")
    languages: list[str] = Field(
        default_factory=list, description="Languages of the chunks as ISO 639-1 codes, most common first."
    )


class Document(BaseModel):
    """A document and where it is on its way."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "9f1c2d3e4b5a",
                "collection_id": "default",
                "name": "handbook.pdf",
                "media_type": "application/pdf",
                "size_bytes": 182044,
                "sha256": "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9",
                "status": "processing",
                "stage": "embed",
                "progress": 0.4,
                "error": None,
                "report": {"page_count": 12, "chunk_count": 40, "attempts": 1},
                "created_at": "2026-01-31T12:00:00.000Z",
                "updated_at": "2026-01-31T12:00:01.500Z",
                "revision_id": None,
                "metadata": {"year": "2026"},
                "source": None,
            }
        }
    )

    id: str = Field(validation_alias=AliasChoices("id", "document_id"), description="Unique within the tenant.")
    collection_id: str | None = Field(description="Its collection.")
    name: str = Field(description="File name as uploaded; with its folders where they were a clean relative path.")
    media_type: str = Field(default="", description="Type found by looking at the content.")
    size_bytes: int = Field(default=0, description="Size of the file.")
    sha256: str = Field(default="", description="Hex sha256 of the file.")
    status: DocumentStatus = Field(
        description="`ready` means searchable. A failed reindex stays `ready` on the old revision, with `error` set. `unknown`: "
        "only a newer version of the service knows this state; seen during an upgrade. `kept`: stored by POST /v1/files, and not "
        "read until it is added to a collection or reindexed."
    )
    stage: str = Field(
        default="", description="While processing: `parse`, `clean`, `chunk`, `embed`, `index` or `activate`."
    )
    progress: float = Field(default=0, description="Share done, 0 to 1: 1 once it is ready.")
    error: DocumentError | None = Field(default=None, description="Why it failed.")
    report: IngestReport = Field(default_factory=IngestReport, description="What happened on the way.")
    created_at: Moment | None = Field(default=None, description="Upload time.")
    updated_at: Moment | None = Field(default=None, description="Last change.")
    revision_id: str | None = Field(default=None, description="Active revision, once there is one.")
    metadata: dict[str, str] = Field(default_factory=dict, description="Fields given at upload.")
    source: DocumentSource | None = Field(
        default=None, description="The file of a source that it is; null of a document that was uploaded."
    )

    @field_validator("report", mode="before")
    @classmethod
    def _always_a_report(cls, value: Any) -> Any:
        return IngestReport() if value is None else value


class DocumentRevision(BaseModel):
    """One version of a document. What is not active has neither text nor file any more, only this."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "1a2b3c4d5e6f",
                "number": 2,
                "state": "active",
                "media_type": "application/pdf",
                "size_bytes": 182044,
                "sha256": "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9",
                "queued_by": "anna",
                "queued_at": "2026-01-31T12:00:00.000Z",
                "ended_at": "2026-01-31T12:00:02.500Z",
                "page_count": 12,
                "chunk_count": 40,
                "error": None,
            }
        }
    )

    id: str = Field(validation_alias=AliasChoices("id", "revision_id"), description="Unique within the tenant.")
    number: int = Field(description="Order of the document's revisions, from 1.")
    state: str | None = Field(
        description="`active`: searches find it. `pending`: it is being made. `replaced`: it was active before. `failed`: it could "
        "not be made. `superseded`: a newer one was asked for first. Null: only a newer version of the service knows this state."
    )
    media_type: str = Field(default="", description="Type of its file.")
    size_bytes: int = Field(default=0, description="Size of its file.")
    sha256: str = Field(
        default="", description="Hex sha256 of its file. The same as of another one: that file was read again."
    )
    queued_by: str | None = Field(
        default=None,
        description="Subject who asked for it. Null: a source did, or Groundwork itself, or it is not known any more.",
    )
    queued_at: Moment | None = Field(
        default=None, description="When it was asked for; null where it is not known any more."
    )
    ended_at: Moment | None = Field(
        default=None,
        description="When it became active or was given up; null while it is pending, or where it is not known.",
    )
    page_count: int = Field(default=0, description="Its pages; 0 where its format has none.")
    chunk_count: int = Field(default=0, description="Its chunks; 0 unless it became active.")
    error: DocumentError | None = Field(default=None, description="Why it could not be made.")

    @field_validator("queued_by", mode="before")
    @classmethod
    def _nobody(cls, value: Any) -> Any:
        return value or None


class DocumentRevisions(BaseModel):
    """The revisions of a document."""

    revisions: list[DocumentRevision] = Field(description="Newest first; of those that have ended, the last 20.")


class DocumentAccess(BaseModel):
    """Who may read a document of those who may read its collection."""

    restricted: bool = Field(
        description="Whether it has an access list. Without one all who may read its collection read it."
    )
    subjects: list[str] = Field(default_factory=list, description="Subjects in the list.")
    groups: list[str] = Field(default_factory=list, description="Groups in the list.")


class NewDocumentAccess(RequestBody):
    """The access list of a document. Owners of its collection always read it. With an empty list nobody else does."""

    model_config = ConfigDict(json_schema_extra={"example": {"subjects": ["anna"], "groups": ["sales"]}})

    subjects: list[MemberName] = Field(default_factory=list, max_length=1000, description="Subjects who may read it.")
    groups: list[MemberName] = Field(default_factory=list, max_length=1000, description="Groups who may read it.")


class UploadedDocument(BaseModel):
    """The file is stored and its job queued."""

    document: Document = Field(description="The same name and content in the same collection is the same document.")


class DocumentList(BaseModel):
    """One page of documents."""

    documents: list[Document] = Field(description="Newest first.")
    next_page_token: str | None = Field(description="For the next page; null on the last.")


class Collection(BaseModel):
    """A set of documents that is searched together."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "contracts",
                "name": "Contracts",
                "created_at": "2026-01-31T12:00:00.000Z",
                "owner": "local-user",
                "visibility": "private",
                "role": "owner",
            }
        }
    )

    id: str = Field(validation_alias=AliasChoices("id", "collection_id"), description="Its id in paths.")
    name: str = Field(description="For people.")
    created_at: Moment | None = Field(default=None, description="When it was made.")
    owner: str | None = Field(
        default=None,
        description="Whose it is. Null: it was made before collections had owners, and is everybody's to read and to change.",
    )
    visibility: str | None = Field(
        default=None,
        description="Who reads it besides its owner and its members: `private` (nobody) or `tenant` (all subjects of the tenant). "
        "Administrators see all. Null or `unknown`: a word that only a newer version knows, treated as `private`.",
    )
    memory: str | None = Field(
        default=None,
        description="How what is remembered of a caller is used in chats over it, where neither the request nor the API key says; "
        "null means as the service is set.",
    )
    local_models_only: bool = Field(
        default=False,
        description="Whether operations on it ask local models only: no text of it, and no question to it, is sent to a model "
        "outside.",
    )
    role: str | None = Field(
        default=None,
        description="What you may do with it. `viewer`: search, ask, open documents. `editor`: also upload, change and delete "
        "documents. `owner`: also share, rename and delete it.",
    )

    @field_validator("owner", mode="before")
    @classmethod
    def _nobody(cls, value: Any) -> Any:
        return value or None


class CollectionList(BaseModel):
    """The collections."""

    collections: list[Collection] = Field(description="By id.")


class NewCollection(RequestBody):
    """A collection to make. One of `id` and `name` is needed."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {"id": "contracts", "name": "Contracts"},
            "anyOf": [
                {"required": ["id"], "properties": {"id": {"minLength": 1}}},
                {"required": ["name"], "properties": {"name": {"minLength": 1}}},
            ],
        }
    )

    id: CollectionFilter = Field(default="", description="1 to 64 of a-z, 0-9, `-`, `_`; empty: made from the name.")
    name: str = Field(default="", max_length=200, description="For people; empty means the id.")
    visibility: Visibility = Field(
        default="private", description="`private`: yours alone. `tenant`: all subjects of the tenant read it."
    )
    local_models_only: bool = Field(
        default=False,
        description="Whether operations on it ask local models only, whatever other models are configured.",
    )


class CollectionMember(BaseModel):
    """A subject or a group with a role on a collection. What is null or `unknown` is of a newer version, and grants nothing."""

    kind: str | None = Field(description="`subject` or `group`.")
    name: str = Field(description="Of the subject or the group.")
    role: str | None = Field(description="`viewer`, `editor` or `owner`.")


class CollectionMembers(BaseModel):
    """The members of a collection, without its owner."""

    members: list[CollectionMember] = Field(description="Subjects before groups, by name.")


class NewCollectionMember(RequestBody):
    """Who gets which role on a collection."""

    model_config = ConfigDict(json_schema_extra={"example": {"kind": "group", "name": "sales", "role": "viewer"}})

    kind: MemberKind = Field(description="`subject`: one user. `group`: all who are in it.")
    name: MemberName = Field(description="As `GET /v1/me` shows it.")
    role: Role = Field(
        description="`viewer`: search, ask, open documents. `editor`: also upload, change and delete documents. `owner`: also "
        "share, rename and delete the collection."
    )


class ChangedCollection(RequestBody):
    """What is to be changed of a collection."""

    model_config = ConfigDict(json_schema_extra={"example": {"visibility": "tenant"}})

    name: Title | None = Field(default=None, description="For people; null means as it is.")
    visibility: Visibility | None = Field(
        default=None,
        description="`private` or `tenant`; null means as it is. Who says this of a collection without an owner becomes its owner.",
    )
    memory: MemoryMode | Literal["unset"] | None = Field(
        default=None,
        description="How what is remembered of a caller is used in chats over it, where neither the request nor the API key says: "
        "`auto`, `agentic`, `always` or `off`; `unset`: as the service is set. Null means as it is.",
    )
    local_models_only: bool | None = Field(
        default=None, description="Whether operations on it ask local models only. Null means as it is."
    )
