"""What a tool is given besides its arguments, when its function has a parameter `context`."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from services.tools.ports import Documents, ModelServer, Retriever
from services.tools.record_search import RecordSearch
from services.tools.records import Records
from services.tools.settings import ToolsSettings


@dataclass(frozen=True)
class Services:
    """The other services, asked in the name of whoever called the tool: with the token of that call. And what the operator gave."""

    retriever: Retriever
    models: ModelServer
    documents: Documents
    records: RecordSearch = field(default_factory=lambda: RecordSearch(Records(), similarity_min=0.0))
    """Curated records of projects, the same for all tenants."""


@dataclass(frozen=True)
class ToolContext:
    """Only for coroutine functions: a plain one runs in another process."""

    call_id: str
    """The caller's name for this call; may be empty for tools without effect."""

    collection_ids: tuple[str, ...]
    """Collections that the call may read; empty means all of the tenant's."""

    settings: ToolsSettings
    services: Services
    now: Callable[[], datetime]

    progress: Callable[[str], Awaitable[None]]
    """Tells the person what is being done, in a short sentence. Only the first twenty of a call are passed on."""
