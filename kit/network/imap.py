"""A connection to an IMAP server, at an address that kit.network.egress permits. IMAPClient blocks, so that its calls are made in a
thread of the connection's own, one after the other."""

import asyncio
import contextlib
import imaplib
import re
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import httpx
from imapclient import IMAPClient, SocketTimeout
from imapclient.exceptions import IMAPClientAbortError, IMAPClientError, LoginError
from imapclient.response_parser import parse_message_list

from kit.network.egress import EgressGuard

_Answer = TypeVar("_Answer")

_SILENCE_S, _CALL_S, _GOODBYE_S = 30.0, 120.0, 5.0
"""Between two pieces of an answer; for a call as a whole, however steadily the server sends; for taking leave."""
ANSWER_BYTES_MAX = 64 * 1024 * 1024
_REST_S = 900.0
"""A server that has enough of us for now does not say for how long."""
_WANTS_REST = re.compile(r"\[(UNAVAILABLE|INUSE|LIMIT|OVERQUOTA|THROTTLED)\]", re.IGNORECASE)
"""RFC 5530; THROTTLED is said by servers of Microsoft and Yahoo."""
_MISREAD = (ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError)
"""What IMAPClient raises on an answer that is none."""


class ImapRefused(Exception):
    """The server says NO to one command. The connection goes on."""


class ImapAway(Exception):
    """The server cannot be asked, or does not let the user in. `advice` says what to do, where that is known."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message, self.advice = message, advice


class LoginRefused(ImapAway):
    """The server refuses the user, the password or the access token."""


class ImapBusy(Exception):
    """The server wants to be asked later."""

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.message, self.retry_after_s = message, retry_after_s


class ConnectionLost(ImapAway):
    """The connection broke in the middle of a call."""


class AnswerTooLong(ConnectionLost):
    """The server says more than it may, so that the connection was broken."""


@dataclass(frozen=True)
class MailServer:
    """Where a mailbox is, and who opens it."""

    host: str
    port: int
    starts_tls: bool
    """Whether the connection begins in clear text and is encrypted before anything is said (STARTTLS)."""
    user: str
    password: str = field(repr=False)
    token: Callable[[], Awaitable[str]] | None = field(default=None, repr=False)
    """Gives out an access token of OAuth, instead of the password."""


class _Protocol(imaplib.IMAP4):
    """Speaks over a socket that is connected, and takes no endless answer."""

    def __init__(self, connected: socket.socket, host: str) -> None:
        self._connected = connected
        self.allow(ANSWER_BYTES_MAX)
        super().__init__(host)

    def allow(self, most: int) -> None:
        """How many bytes the server may send from now on."""
        self._bytes_most = self.bytes_left = most

    def _create_socket(self, timeout: float | None = None) -> socket.socket:  # noqa: ARG002 - it has one
        return self._connected

    def read(self, size: int) -> bytes:
        self._spend(size)
        return super().read(size)

    def readline(self) -> bytes:
        try:
            line = super().readline()
        except self.abort:
            raise
        except self.error as error:  # the rest of the line would be taken for the next one
            self.bytes_left = -1
            raise self.abort(str(error)) from error
        self._spend(len(line))
        return line

    def _spend(self, size: int) -> None:
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise self.abort(f"the answer has more than {self._bytes_most >> 10} KiB")


class MailClient(IMAPClient):  # type: ignore[misc] # has no types
    """Knows which folder is open. IMAPClient has no option for the address that it connects to; a test connects to what must be
    refused."""

    def __init__(self, connected: socket.socket, server: MailServer) -> None:
        self._connected = connected
        self._opened = ("", 0)
        timeout = SocketTimeout(connect=_SILENCE_S, read=_SILENCE_S)
        super().__init__(server.host, server.port, ssl=not server.starts_tls, timeout=timeout)
        self.normalise_times = False

    def _create_IMAP4(self) -> _Protocol:  # noqa: N802 - IMAPClient's name
        return _Protocol(self._connected, self.host)

    def open_folder(self, name: str, *, anew: bool = False) -> int:
        """Opens a folder without the right to change it, if need be, and returns its UIDVALIDITY."""
        if anew or self._opened[0] != name:
            self._opened = ("", 0)
            self._opened = (name, int(self.select_folder(name, readonly=True)[b"UIDVALIDITY"]))
        return self._opened[1]

    def find(self, criteria: Sequence[bytes]) -> Sequence[int]:
        """UIDs of the messages in the open folder to which all of it applies; somebody's words as `search_words` makes them.
        IMAPClient's own search leaves a word bare that has no space, quote or backslash: a server would take `{10}` for the
        beginning of what follows, and `(` for that of a list."""
        charset = [] if all(map(bytes.isascii, criteria)) else [b"CHARSET", b"UTF-8"]
        return list(parse_message_list(self._raw_command_untagged(b"SEARCH", [*charset, *criteria])))


def search_words(words: str) -> bytes:
    """Words for `MailClient.find` that mean themselves: in quotes (RFC 3501, `quoted`), or bare in another alphabet, which is sent
    as a literal. They have no line breaks."""
    said = words.encode()
    return b'"%b"' % said.replace(b"\\", b"\\\\").replace(b'"', b'\\"') if said.isascii() else said


class ImapConnection:
    """Connects when it is needed, and again after it was lost."""

    def __init__(self, guard: EgressGuard, server: MailServer) -> None:
        self._guard, self._server = guard, server
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="imap")
        self._client: MailClient | None = None
        self._socket: socket.socket | None = None
        """Of the last connection."""
        self._turn = asyncio.Lock()

    async def call(self, ask: Callable[[MailClient], _Answer], most: int = ANSWER_BYTES_MAX) -> _Answer:
        """What `ask` returns, which is called in the thread. `most`: how many bytes the server may answer. Raises ImapRefused,
        ConnectionLost where there was a connection, AnswerTooLong, ImapAway where there is none to be had, ImapBusy, and as the
        guard and `token`."""
        async with self._turn:
            client = self._client = self._client or await self._connect()
            client._imap.allow(most)
            try:
                return await self._in_thread(lambda: ask(client))
            except (ImapRefused, ImapBusy):
                raise
            except ImapAway as error:
                self._drop()
                lost = AnswerTooLong if client._imap.bytes_left < 0 else ConnectionLost
                raise lost(error.message, error.advice) from error
            except BaseException:
                self._drop()
                raise

    async def close(self) -> None:
        """Takes leave, if there is still somebody to take it from."""
        if self._client is not None:
            with contextlib.suppress(ImapRefused, ImapAway, ImapBusy, TimeoutError):
                async with asyncio.timeout(_GOODBYE_S):
                    await self.call(lambda client: client.logout())
        self._drop()
        self._thread.shutdown(wait=False)

    async def _connect(self) -> MailClient:
        """Connects and logs in."""
        addresses = await self._guard.addresses(self._server.host, self._server.port)
        token = await self._server.token() if self._server.token else ""
        given_up = threading.Event()

        def connect() -> MailClient:
            self._socket = _connected(addresses, self._server)
            if given_up.is_set():  # the wait ended before there was a socket to close
                self._socket.close()
                raise ConnectionAbortedError("given up")
            client = MailClient(self._socket, self._server)
            try:
                if self._server.starts_tls:
                    client.starttls(_trusted())
                    self._socket = client.socket()
                _log_in(client, self._server, token)
            except BaseException:
                _shut(client)
                raise
            return client

        try:
            return await self._in_thread(connect)
        except ImapRefused as error:
            raise ImapAway(f"{self._server.host} does not let anybody in ({error})") from error
        except BaseException:
            given_up.set()
            self._cut()
            raise

    def _drop(self) -> None:
        client, self._client = self._client, None
        self._cut()
        if client is not None:
            self._thread.submit(_shut, client)

    def _cut(self) -> None:
        """Ends the call that the thread is in."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    async def _in_thread(self, do: Callable[[], _Answer]) -> _Answer:
        try:
            async with asyncio.timeout(_CALL_S):
                return await asyncio.get_running_loop().run_in_executor(self._thread, do)
        except LoginError as error:
            self._raise_if_busy(error)
            raise LoginRefused(f"{self._server.host} refuses the user or the password ({_said(error)})") from error
        except (IMAPClientAbortError, OSError) as error:
            self._raise_if_busy(error)
            raise ImapAway(f"{self._server.host} cannot be asked ({_said(error)})", "see that it is there") from error
        except IMAPClientError as error:
            self._raise_if_busy(error)
            raise ImapRefused(_said(error)) from error
        except _MISREAD as error:
            raise ImapAway(
                f"{self._server.host} does not answer as IMAP does", "see that server and port are right"
            ) from error

    def _raise_if_busy(self, error: Exception) -> None:
        """Raises ImapBusy where the server wants to be left alone."""
        if _WANTS_REST.search(str(error)):
            raise ImapBusy(f"{self._server.host} wants to be asked later ({_said(error)})", _REST_S) from error


def _connected(addresses: Sequence[str], server: MailServer) -> socket.socket:
    """Tries the addresses in turn. Raises OSError."""
    failure: OSError | None = None
    for address in addresses:
        try:
            plain = socket.create_connection((address, server.port), timeout=_SILENCE_S)
        except OSError as error:
            failure = error
            continue
        if server.starts_tls:
            return plain
        try:
            return _trusted().wrap_socket(plain, server_hostname=server.host)
        except OSError:
            plain.close()
            raise
    assert failure is not None
    raise failure


def _trusted() -> ssl.SSLContext:
    """Trusts public authorities, or those that SSL_CERT_FILE names."""
    return httpx.create_ssl_context()


def _log_in(client: IMAPClient, server: MailServer, token: str) -> None:
    if token:
        try:
            client.oauth2_login(server.user, token)
        except IMAPClientAbortError:
            raise
        except IMAPClientError as error:
            raise LoginError(str(error)) from error
    elif client.has_capability("AUTH=PLAIN"):  # takes names and passwords of any alphabet
        client.plain_login(server.user, server.password)
    else:
        client.login(server.user, server.password)


def _shut(client: MailClient) -> None:
    with contextlib.suppress(OSError):
        client.shutdown()


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
