"""What tools ask of a mailbox: which messages there are, and one of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Protocol

from services.tools.connections.records import Connection
from services.tools.errors import ToolError


class MailFailed(ToolError):
    """The mail server did not do what was asked."""

    reason = "MAIL_FAILED"


@dataclass(frozen=True)
class MailQuery:
    """Which messages are looked for: those to which all of it applies."""

    words: Sequence[str] = ()
    """Each must stand somewhere in the message."""
    sender: str = ""
    recipient: str = ""
    subject: str = ""
    since: date | None = None
    before: date | None = None
    is_unread: bool = False
    folder: str = "INBOX"
    most: int = 10


@dataclass(frozen=True)
class MailHead:
    """A message as a list shows it."""

    message_id: str
    """Names it in its mailbox: folder, UIDVALIDITY and UID."""
    url: str
    """The same as an address (RFC 5092)."""
    subject: str
    sender: str
    recipients: Sequence[str]
    date: str
    """Day and time, as 2026-11-28T10:00:00+00:00; empty where the message does not say."""
    size_bytes: int
    is_unread: bool


class Mailbox(Protocol):
    """The mail server that the operator names, asked in the name of a connection. Each method raises ToolError."""

    async def search(
        self, query: MailQuery, connection: Connection, *, tenant_id: str, run: str
    ) -> tuple[int, Sequence[MailHead]]:
        """How many messages were found, and the newest of them."""
        ...

    async def folders(self, connection: Connection, *, tenant_id: str, run: str) -> Sequence[str]:
        """The names of the folders."""
        ...

    async def read(self, message_id: str, connection: Connection, *, tenant_id: str, run: str) -> tuple[str, bytes]:
        """The address of a message, and all of it as it was sent."""
        ...
