"""The message store of one machine, as its data directory lays it out and as a command opens it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from kit.jetstream import Nats

OpenStore = Callable[[Path], AbstractAsyncContextManager[Nats]]
"""Serves the message store in a folder that nobody else uses."""


class LocalStore(Protocol):
    """A data directory that this process has locked."""

    @property
    def path(self) -> Path:
        """The directory itself."""

    @property
    def nats_store(self) -> Path:
        """JetStream's files."""

    @property
    def ledger_file(self) -> Path:
        """What the message store is known to hold."""

    @property
    def keys(self) -> Path:
        """The keys of principal tokens."""
