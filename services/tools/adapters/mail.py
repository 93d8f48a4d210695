"""A mail server that tools read in the name of connections, by IMAP (RFC 9051 and RFC 3501). Nothing is changed there, not even
whether a message was seen. Each call has a connection to the server of its own."""

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from imapclient.datetime_util import format_criteria_date
from pydantic import SecretStr

from kit.errors import GroundworkError
from kit.network.egress import EgressGuard
from kit.network.hosts import ascii_host
from kit.network.imap import (
    AnswerTooLong,
    ImapAway,
    ImapBusy,
    ImapConnection,
    ImapRefused,
    LoginRefused,
    MailClient,
    MailServer,
    search_words,
)
from services.tools.connections.mail import MailFailed, MailHead, MailQuery
from services.tools.connections.records import Connection
from services.tools.connections.windows import ConnectionWindows
from services.tools.errors import ServiceUnavailable, ToolError
from services.tools.web.files import FILE_BYTES_MAX
from services.tools.web.pages import WebBusy

_Answer = TypeVar("_Answer")

PORTS = {"imaps": 993, "imap": 143}
_LOGIN_TIMEOUT_S = 12.0
_ANSWER_BYTES_MAX = 4 * 1024 * 1024
_OTHER_BYTES = 64 * 1024
_FOLDERS_MAX = 200
_NOT_TO_OPEN = {b"\\noselect", b"\\nonexistent"}
_HEAD_CHARACTERS_MAX, _RECIPIENTS_MAX = 300, 10
_RAW_HEAD_MAX = 2_000
"""So much of a head is decoded: the standard library's time for it grows with the square of its length."""
_HEADS = ("ENVELOPE", "INTERNALDATE", "RFC822.SIZE", "FLAGS")


class ImapMailbox:
    """The Mailbox of an operator's mail server."""

    def __init__(self, guard: EgressGuard, address: str) -> None:
        """`address`: imaps://imap.example.com, or imap://imap.example.com for STARTTLS."""
        self.address = address
        parts = urlsplit(address)
        self._guard = guard
        self._starts_tls = parts.scheme == "imap"
        self._host, self._port = ascii_host(parts.hostname or ""), parts.port or PORTS[parts.scheme]
        self._windows = ConnectionWindows()

    async def account(self, secret: SecretStr, user: str, *, is_token: bool) -> str:
        """Logs in as a user. Raises ToolError."""
        try:
            async with asyncio.timeout(_LOGIN_TIMEOUT_S), self._open(user, secret, is_token=is_token) as connection:
                await connection.call(lambda client: client.noop())
        except ImapBusy as error:
            raise ServiceUnavailable(f"{error.message}; try again in a quarter of an hour") from error
        return user

    async def search(
        self, query: MailQuery, connection: Connection, *, tenant_id: str, run: str
    ) -> tuple[int, Sequence[MailHead]]:
        def ask(client: MailClient) -> tuple[int, list[MailHead]]:
            uid_validity = client.open_folder(query.folder)
            uids = client.find(_criteria(query))
            newest = heapq.nlargest(query.most, uids)
            found = client.fetch(newest, _HEADS) if newest else {}
            heads = [
                self._head(query.folder, uid_validity, uid, found[uid])
                for uid in newest
                if b"ENVELOPE" in found.get(uid, {})
            ]
            return len(uids), heads

        return await self._asked(ask, connection, tenant_id, run, _ANSWER_BYTES_MAX)

    async def folders(self, connection: Connection, *, tenant_id: str, run: str) -> Sequence[str]:
        def ask(client: MailClient) -> list[str]:
            return [
                name if isinstance(name, str) else name.decode("utf-8", "replace")
                for flags, _, name in client.list_folders()
                if not _NOT_TO_OPEN & {flag.lower() for flag in flags}
            ][:_FOLDERS_MAX]

        return await self._asked(ask, connection, tenant_id, run, _ANSWER_BYTES_MAX)

    async def read(self, message_id: str, connection: Connection, *, tenant_id: str, run: str) -> tuple[str, bytes]:
        folder, uid_validity, uid = _place(message_id)

        def ask(client: MailClient) -> bytes | None:
            if client.open_folder(folder) != uid_validity:
                return None
            size_bytes = client.fetch([uid], ["RFC822.SIZE"]).get(uid, {}).get(b"RFC822.SIZE")
            if size_bytes is None:
                return None
            if size_bytes > FILE_BYTES_MAX:
                raise _too_large()
            return bytes(client.fetch([uid], ["BODY.PEEK[]"])[uid][b"BODY[]"] or b"")

        message = await self._asked(ask, connection, tenant_id, run, FILE_BYTES_MAX + _OTHER_BYTES)
        if message is None:
            raise MailFailed("the message is not there any more, or was moved; search for it again", reason="MAIL_GONE")
        return self._url(folder, uid_validity, uid), message

    async def _asked(
        self, ask: Callable[[MailClient], _Answer], connection: Connection, tenant_id: str, run: str, most: int
    ) -> _Answer:
        windows = self._windows.of(tenant_id, connection)
        windows.take(self._host, run)
        try:
            async with self._open(connection.account, connection.secret, is_token=connection.is_token) as opened:
                return await opened.call(ask, most)
        except ImapBusy as error:
            windows.leave_alone(self._host, error.retry_after_s)
            raise WebBusy(f"{error.message}; go on without mail") from error

    @asynccontextmanager
    async def _open(self, user: str, secret: SecretStr, *, is_token: bool) -> AsyncIterator[ImapConnection]:
        """Raises ToolError for whatever goes wrong there, but for ImapBusy."""
        given = secret.get_secret_value()

        async def token() -> str:
            return given

        password, gives_token = ("", token) if is_token else (given, None)
        server = MailServer(self._host, self._port, self._starts_tls, user, password, gives_token)
        connection = ImapConnection(self._guard, server)
        try:
            yield connection
        except GroundworkError as error:  # of the guard, before anything is sent
            raise ServiceUnavailable(error.message, reason=error.reason) from error
        except LoginRefused as error:
            raise MailFailed(
                f"{error.message}; connect mail again with another password, where the provider has them one that is made for "
                "programs",
                reason="CONNECTION_REFUSED",
            ) from error
        except AnswerTooLong as error:
            raise MailFailed(
                "the mail server says more than is read at once; ask for fewer messages, or in another folder",
                reason="MAIL_TOO_LARGE",
            ) from error
        except ImapAway as error:
            raise ServiceUnavailable(f"{error.message}; try again later, or go on without mail") from error
        except ImapRefused as error:
            raise MailFailed(
                f"the mail server does not do that ({error}); see that there is such a folder, without a folder the list shows all"
            ) from error
        finally:
            await connection.close()

    def _head(self, folder: str, uid_validity: int, uid: int, said: Mapping[bytes, Any]) -> MailHead:
        envelope = said[b"ENVELOPE"]
        sent = envelope.date if isinstance(envelope.date, datetime) else said.get(b"INTERNALDATE")
        size_bytes = said.get(b"RFC822.SIZE")
        senders = _people(envelope.from_)
        return MailHead(
            f"{folder}/{uid_validity}-{uid}",
            self._url(folder, uid_validity, uid),
            _decoded(envelope.subject),
            senders[0] if senders else "",
            [*_people(envelope.to), *_people(envelope.cc)][:_RECIPIENTS_MAX],
            sent.isoformat(timespec="seconds") if isinstance(sent, datetime) else "",
            size_bytes if isinstance(size_bytes, int) else 0,
            b"\\Seen" not in said.get(b"FLAGS", ()),
        )

    def _url(self, folder: str, uid_validity: int, uid: int) -> str:
        return f"imap://{self._host}/{quote(folder)};UIDVALIDITY={uid_validity}/;UID={uid}"


def _criteria(query: MailQuery) -> list[bytes]:
    said = [b"UNDELETED"]
    for word in query.words:
        said += [b"TEXT", search_words(word)]
    for name, value in ((b"FROM", query.sender), (b"TO", query.recipient), (b"SUBJECT", query.subject)):
        said += [name, search_words(value)] if value else []
    for name, day in ((b"SINCE", query.since), (b"BEFORE", query.before)):
        said += [name, format_criteria_date(day)] if day else []
    return [*said, *([b"UNSEEN"] if query.is_unread else [])]


def _place(message_id: str) -> tuple[str, int, int]:
    """Folder, UIDVALIDITY and UID. Raises MailFailed."""
    folder, _, mark = message_id.rpartition("/")
    uid_validity, _, uid = mark.partition("-")
    if not folder or not all(each.isascii() and each.isdigit() and len(each) <= 10 for each in (uid_validity, uid)):
        raise MailFailed("message is the id of a message as mail_search shows it", reason="INVALID_ARGUMENTS")
    return folder, int(uid_validity), int(uid)


def _people(addresses: Any) -> list[str]:
    """Names with their addresses."""
    found = []
    for each in (addresses or ())[:_RECIPIENTS_MAX]:
        address = "@".join(_decoded(part) for part in (each.mailbox, each.host) if part)
        name = _decoded(each.name)
        found.append(f"{name} <{address}>" if name else address)
    return [person[:_HEAD_CHARACTERS_MAX] for person in found if person]


def _decoded(raw: object) -> str:
    """A head in its words (RFC 2047), in one line."""
    text = raw[:_RAW_HEAD_MAX].decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw or "")[:_RAW_HEAD_MAX]
    with suppress(HeaderParseError, LookupError, ValueError):
        text = str(make_header(decode_header(text)))
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())[:_HEAD_CHARACTERS_MAX]


def _too_large() -> ToolError:
    return MailFailed(
        f"the message is larger than {FILE_BYTES_MAX // 1024**2} MiB; a person can read it in their mail program",
        reason="MAIL_TOO_LARGE",
    )
