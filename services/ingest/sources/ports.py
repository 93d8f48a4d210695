"""What a sync needs from outside. A kind of source is a module in services/ingest/adapters/sources with a SourceKind named KIND."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from kit.network.egress import EgressGuard
from services.ingest.sources.models import FileReaders, SourceFile, SourceListing, SourceRecord


class SourceReader(Protocol):
    """A source that is open. Every method may raise SourceAway and SourceBusy, which end the sync."""

    async def list_changes(self, cursor: str) -> SourceListing:
        """What is there, or what has changed since the cursor of an earlier listing. Raises SourceTooLarge."""

    def fetch(self, file: SourceFile) -> AsyncIterator[bytes]:
        """The bytes of a listed file. Raises FileNotTaken for what is wrong with this file alone."""


@runtime_checkable
class AccessReader(Protocol):
    """A source that is open and says who may read its files."""

    is_public: bool
    """Whether it is known that everybody may read every file."""

    async def describe_access(self, keys: Collection[str]) -> Mapping[str, FileReaders]:
        """Who may read the files of these keys now. A file that is left out is read by nobody. Raises SourceAway and SourceBusy."""


@dataclass(frozen=True)
class SourceField:
    """Something that a person says of a source."""

    name: str
    says: str
    """What it means."""
    is_required: bool = False
    is_secret: bool = False
    is_url: bool = False
    choices: tuple[str, ...] = ()
    """What it may be; empty for anything."""


@dataclass(frozen=True)
class Surroundings:
    """What this process has for sources."""

    watched_folders: Callable[[str], Mapping[str, Path]]
    """Folders that a tenant may watch, by name."""
    max_files: int
    """In a listing."""
    guard: EgressGuard = field(default_factory=EgressGuard)
    """Judges every address that is connected to."""


class KeptSecrets(Protocol):
    """The secrets of a source where they are kept, for services that exchange them. Both methods may raise Unavailable."""

    async def read(self) -> Mapping[str, str]:
        """Those of now: another process may have exchanged them."""

    async def exchange(self, fresh: Mapping[str, str]) -> None:
        """Keeps what a service gave out instead of secrets that were read before. Other secrets of a person win."""


@dataclass(frozen=True)
class Opening:
    """What a source is opened with."""

    tenant_id: str
    settings: Mapping[str, str]
    secrets: Mapping[str, str]
    surroundings: Surroundings
    kept: KeptSecrets | None = None
    """None: no secret can be exchanged."""

    async def read_secrets(self) -> Mapping[str, str]:
        """Those of now."""
        return self.secrets if self.kept is None else await self.kept.read()

    async def exchange_secrets(self, fresh: Mapping[str, str]) -> None:
        """Before the first use of what came with them, so that a kill leaves none behind that is not valid any more."""
        if self.kept is not None:
            await self.kept.exchange(fresh)


@dataclass(frozen=True)
class SourceKind:
    """A kind of source."""

    name: str
    says: str
    """What it is, in a sentence."""
    fields: tuple[SourceField, ...]
    open: Callable[[Opening], AbstractAsyncContextManager[SourceReader]]
    """Raises BadSource, SourceAway, SourceBusy, and what the guard raises."""
    default_name: Callable[[Mapping[str, str]], str]
    """Of a source with these settings."""
    needs_admin: bool = False
    """Whether only who sees all of the tenant may make one."""
    tells_readers: Callable[[Mapping[str, str]], bool] = lambda _: False
    """Whether a source with these settings says who may read a file. Then its reader is an AccessReader."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Settings of a new source that does not name them. Sources of earlier releases stay without them."""
    watch: Callable[[Opening], AsyncIterator[None]] | None = None
    """Tells when something has changed there, until closed; None where only the schedule can tell."""


class SourceStore(Protocol):
    """Records of sources. Every method may raise Unavailable."""

    async def get(self, tenant_id: str, source_id: str) -> SourceRecord | None: ...

    async def create(self, record: SourceRecord) -> None:
        """Raises AlreadyExists."""

    async def change(
        self, tenant_id: str, source_id: str, change: Callable[[SourceRecord], SourceRecord]
    ) -> SourceRecord | None:
        """Writes what `change` makes of the stored record, and returns it; None when there is none. `change` is called again where
        another writer was faster, and what it raises is raised."""

    async def purge(self, tenant_id: str, source_id: str) -> None:
        """Harmless when it is gone."""

    def all_of(self, tenant_id: str) -> AsyncIterator[SourceRecord]:
        """The tenant's sources; "*" means every tenant's."""

    def watch(self) -> AsyncGenerator[tuple[tuple[str, str], SourceRecord | None], None]:
        """All tenants' sources by place, then every change; None for one that is gone."""


class SecretSealer(Protocol):
    """Keeps what nobody else may read."""

    def seal(self, value: bytes, place: str) -> bytes: ...

    def open(self, sealed: bytes, place: str) -> bytes:
        """Raises FailedPrecondition when it cannot be opened any more."""
