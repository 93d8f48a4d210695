"""What a tool is given besides its arguments, when its function has a parameter `context`."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from kit.access.principal import Principal
from kit.stores.collections import DEFAULT_ID, own_id
from services.tools.browser.steps import Browser
from services.tools.connections.drive import GoogleDrive
from services.tools.connections.github import Github
from services.tools.connections.mail import Mailbox
from services.tools.connections.records import Connections
from services.tools.ports import Documents, Memory, ModelServer, Retriever
from services.tools.projects.records import Records
from services.tools.projects.searching import RecordSearch
from services.tools.settings import ToolsSettings
from services.tools.sql.databases import Databases
from services.tools.web.reader import FileReader, Web
from services.tools.web.searching import WebSearch


@dataclass(frozen=True)
class Services:
    """The other services, asked in the name of the tool's caller: with the token of that call. And what the operator gave."""

    retriever: Retriever
    models: ModelServer
    documents: Documents
    records: RecordSearch = field(default_factory=lambda: RecordSearch(Records(), similarity_min=0.0))
    """Curated records of projects, the same for all tenants."""
    databases: Databases = field(default_factory=Databases)
    """Databases that the operator lets agents ask."""
    memory: Memory | None = None
    """What is remembered of the caller."""
    web: Web | None = None
    """Pages of the web; None where the operator allows none."""
    browser: Browser | None = None
    """A browser for pages that scripts draw; None where there is no Chromium."""
    web_search: WebSearch | None = None
    """The web's search engine; None where the operator names none."""
    connections: Connections | None = None
    """What the callers have connected."""
    github: Github | None = None
    """GitHub; None where the operator does not let it be connected."""
    mail: Mailbox | None = None
    """The mail server of connections; None where the operator names none."""
    drive: GoogleDrive | None = None
    """Google Drive; None where the operator does not let it be connected."""
    files: FileReader | None = None
    """What reads files that are not kept."""


@dataclass(frozen=True)
class ToolContext:
    """Only for coroutine functions: a plain one runs in another process."""

    call_id: str
    """The caller's name for this call; may be empty for tools without effect."""

    collection_ids: tuple[str, ...]
    """Collections that the call may read; empty means all that its caller may."""

    settings: ToolsSettings
    services: Services
    now: Callable[[], datetime]

    caller: Principal
    """In whose name the tool was called."""

    progress: Callable[[str], Awaitable[None]]
    """Tells the person what is being done, in a short sentence. Only the first twenty of a call are passed on."""

    @property
    def notes(self) -> str:
        """The collection in which the caller's agents keep notes."""
        return self._own(self.settings.tools_notes_collection)

    def resolve_collection_id(self, collection_id: str) -> str:
        """Resolves a name that a model wrote: each caller has a default collection and notes. A collection that the call is bound
        to keeps its id."""
        if collection_id in self.collection_ids:
            return collection_id
        is_everybodys = collection_id in (DEFAULT_ID, self.settings.tools_notes_collection)
        return self._own(collection_id) if is_everybodys else collection_id

    def _own(self, name: str) -> str:
        return own_id(name, self.caller, self.settings.local_principal())

    @property
    def run_id(self) -> str:
        """A name of the run that the call is a part of, in all tenants."""
        return f"{self.caller.tenant_id}/{self.call_id.partition('/')[0] or self.caller.subject}"

    def outward_id(self) -> str:
        """A name of this call for servers outside, the same for the same call, so that they can tell when they are asked twice. It
        is of the tenant too, since tenants choose their call ids alike, and tells neither.
        """
        words = f"{self.caller.tenant_id}\0{self.call_id}"
        return hashlib.sha256(words.encode()).hexdigest()[:40]
