"""What a tool is given besides its arguments, when its function has a parameter `context`."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from kit.principal import current_principal
from services.tools.ports import Documents, ModelServer, Retriever
from services.tools.projects.records import Records
from services.tools.projects.searching import RecordSearch
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

    def outward_id(self) -> str:
        """A name of this call for servers outside, the same for the same call, so that they can tell when they are asked twice. It
        is of the tenant too, since tenants choose their call ids alike, and tells neither.
        """
        words = f"{current_principal().tenant_id}\0{self.call_id}"
        return hashlib.sha256(words.encode()).hexdigest()[:40]
