"""Settings of the tools service."""

from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, field_validator
from pydantic_settings import NoDecode

from kit.settings import Identifier, ServiceSettings
from services.tools.records import load_records


def _paths(value: object) -> object:
    return tuple(Path(name.strip()) for name in value.split(",") if name.strip()) if isinstance(value, str) else value


Paths = Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_paths)]
"""Folders, written with commas between them."""


class ToolsSettings(ServiceSettings):
    """How much it does at once, and for whom."""

    nats_url: str = "nats://127.0.0.1:4222"
    """NATS with JetStream, with credentials in the URL where it asks for them: calls with an effect are noted there."""
    retriever_address: str = "127.0.0.1:7002"
    """host:port of the retriever."""
    reranker_address: str = "127.0.0.1:7001"
    """host:port of the model server."""
    ingest_address: str = "127.0.0.1:7003"
    """host:port of the ingest service: tools may keep documents."""
    tools_calls_at_once: int = Field(default=8, ge=1)
    """Tool calls that run beside each other. Most wait for something; 8 keep a small machine from being swamped."""
    tools_calls_waiting: int = Field(default=64, ge=0)
    """Calls that may wait for their turn. More are turned away at once, since they would only run into their deadlines."""
    tools_processes: int = Field(default=2, ge=1)
    """Processes for tools that compute; each takes 30 MB once it was needed. One that takes too long is killed and replaced."""
    tools_text_tokens: int = Field(default=2000, ge=200)
    """Tokens of document text that one call gives a model, by an estimate from above; longer passages are cut, and can be fetched
    one by one. Eight passages of usual size fit, and a model's context holds several such answers."""
    tools_allowed: dict[str, list[str]] = Field(default_factory=dict)
    """Tools by tenant, as JSON: {"acme": ["math_eval", "time_now"]}. A tenant that is not named may use all."""
    tools_folders: Paths = ()
    """Folders, comma-separated, whose Python files are tools too, so that one can be added without building an image: the files are
    read at the start and run as this service, so nobody else may write there."""
    tools_breaker_failures: int = Field(default=5, ge=1)
    """So many calls of a tool that broke, took too long or found a service away, in a row and within
    `GROUNDWORK_TOOLS_BREAKER_WINDOW_S`, and it is left alone: whoever calls it is told so at once instead of waiting."""
    tools_breaker_window_s: float = Field(default=30.0, gt=0)
    """Seconds within which those failures lie. Failures that are further apart are single ones."""
    tools_breaker_open_s: float = Field(default=5.0, gt=0)
    """Seconds until a tool that is left alone is tried again by one call; twice as many after each try that fails, up to 60."""
    tools_notes_collection: Identifier = "notes"
    """Collection in which rag_index keeps texts when the model names no other; made for a tenant when the first text is kept."""
    tools_kb_collection: Identifier = "knowledge-base"
    """Collection that query_local_kb searches: the curated documents that a tenant's agents rely on. A tenant without one is told
    so."""
    tools_records_file: Path | None = None
    """Curated records of projects that portfolio, search_projects and get_project_details answer from: a JSON array, or one JSON
    object on each line, with id, name, summary, description, technologies, links, year, role and details. Read at start, the same
    for all tenants. Unset: records about Groundwork itself, as an example."""
    tools_records_similarity_min: float = Field(default=0.25, ge=-1, le=1)
    """Least cosine of a record that search_projects finds by its meaning alone. The default was measured with all-MiniLM-L6-v2, the
    embedder that comes with the system: right records lie above it, the nearest ones to questions about something else below
    0.16. Another model needs another value."""

    @field_validator("tools_records_file")
    @classmethod
    def _can_be_read(cls, value: Path | None) -> Path | None:
        if value is not None:
            load_records(value)
        return value
