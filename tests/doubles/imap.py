"""A mail server for tests: pymap, which speaks IMAP4rev1 over TLS, with one user. It runs in a thread of its own. Messages are put
in and moved by a client, as by a person's program."""

import asyncio
import ssl
import threading
from argparse import Namespace
from collections.abc import Callable, Collection, Iterator
from contextlib import AsyncExitStack, closing, contextmanager
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Any, TypeVar

from imapclient import IMAPClient
from proxyprotocol.reader import ProxyProtocolReader
from proxyprotocol.sock import SocketInfo
from proxyprotocol.version import ProxyProtocolVersion
from pymap.backend.dict import Config, Login
from pymap.context import connection_exit
from pymap.exceptions import InvalidAuth
from pymap.imap import IMAPConnection, IMAPServer
from pymap.imap.state import ConnectionState
from pymap.parsing.response import ResponseNo
from pymap.user import Passwords, UserMetadata
from pysasl import SASLAuth
from pysasl.creds.external import ExternalCredentials

from kit.testing.certificates import Authority

USER = "anna@example.com"
_TIMEOUT_S = 60.0
_Answer = TypeVar("_Answer")


class _Config(Config):
    greeting = b"Server ready"  # its own asks a name server

    @property
    def tls_auth(self) -> SASLAuth:
        return SASLAuth.named([b"PLAIN", b"LOGIN", b"XOAUTH2"])


class MailHost:
    """A running server."""

    def __init__(self, folder: Path) -> None:
        authority = Authority()
        self.authorities_file = folder / "authorities.pem"
        """For SSL_CERT_FILE."""
        self.authorities_file.write_bytes(authority.pem)
        self._cert_file, self._key_file = folder / "mail.crt", folder / "mail.key"
        for file, data in zip((self._cert_file, self._key_file), authority.issue(), strict=True):
            file.write_bytes(data)
        self.password = "s3cret"
        self.port = self.starttls_port = 0
        self.commands: list[bytes] = []
        """Names of commands from everybody."""
        self.access_tokens: Collection[str] = ()
        """Of OAuth, each of which lets the user in."""
        self.refused_uids: set[int] = set()
        """Messages that are given out to nobody."""
        self.broken_uids: set[int] = set()
        """Messages at which the server hangs up."""
        self.writers: list[asyncio.StreamWriter] = []
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()

    @contextmanager
    def running(self) -> Iterator["MailHost"]:
        started = threading.Event()
        thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve(started)))
        thread.start()
        try:
            assert started.wait(_TIMEOUT_S)
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._stopped.set)
            thread.join(_TIMEOUT_S)
            self._loop.close()

    async def _serve(self, started: threading.Event) -> None:
        args = Namespace(
            host=None,
            port=0,
            debug=False,
            cert=str(self._cert_file),
            key=str(self._key_file),
            tls=False,
            passlib_cfg=None,
            proxy_protocol=None,
            demo_data=False,
            demo_user=USER,
            demo_password=self.password,
        )
        config = _Config.from_args(args, invalid_user_sleep=0.0)
        config.apply_context()
        self._config, self._login = config, _Login(config, self)
        await self._set_password()
        opportunistic = _Config.from_args(Namespace(**{**vars(args), "tls": True}), invalid_user_sleep=0.0)
        reader = ProxyProtocolReader(ProxyProtocolVersion.get(None))
        inside = await asyncio.start_server(
            reader.get_callback(_Server(self, config)), "127.0.0.1", ssl=config.ssl_context
        )
        before = await asyncio.start_server(reader.get_callback(_Server(self, opportunistic)), "127.0.0.1")
        async with inside, before:
            self.port, self.starttls_port = (each.sockets[0].getsockname()[1] for each in (inside, before))
            started.set()
            await self._stopped.wait()
            for writer in self.writers:
                writer.close()
            await asyncio.gather(*(writer.wait_closed() for writer in self.writers), return_exceptions=True)

    async def _set_password(self) -> None:
        hashed = await Passwords(self._config).hash_password(self.password)
        self._login.users_dict.pop(USER, None)
        await self._login.demo_user_identity.set(UserMetadata(self._config, USER, password=hashed))

    async def change_password(self, password: str) -> None:
        self.password = password
        changing = asyncio.run_coroutine_threadsafe(self._set_password(), self._loop)
        await asyncio.wrap_future(changing)

    async def do(self, ask: Callable[[IMAPClient], _Answer]) -> _Answer:
        """As the user."""

        def work() -> _Answer:
            trusted = ssl.create_default_context(cafile=self.authorities_file)
            with IMAPClient("127.0.0.1", self.port, ssl_context=trusted, timeout=_TIMEOUT_S) as client:
                client.login(USER, self.password)
                return ask(client)

        return await asyncio.to_thread(work)

    async def put(self, folder: str, subject: str, text: str, attached: bytes = b"") -> int:
        """A message, whose UID is returned."""

        def append(client: IMAPClient) -> int:
            client.append(folder, message(subject, text, attached))
            client.select_folder(folder)
            return int(max(client.search()))

        return await self.do(append)

    async def delete(self, folder: str, uid: int) -> None:
        def delete(client: IMAPClient) -> Any:
            client.select_folder(folder)
            client.delete_messages([uid])
            client.expunge()

        await self.do(delete)

    async def move(self, folder: str, uid: int, to: str) -> None:
        def move(client: IMAPClient) -> Any:
            client.select_folder(folder)
            client.move([uid], to)

        await self.do(move)


def message(subject: str, text: str, attached: bytes = b"") -> bytes:
    made = EmailMessage()
    made["From"] = "Bo <bo@example.com>"
    made["To"] = USER
    made["Date"] = "Mon, 02 Mar 2026 10:00:00 +0000"
    made["Subject"] = subject
    made.set_content(text)
    if attached:
        made.add_attachment(attached, maintype="application", subtype="octet-stream", filename="data.bin")
    return made.as_bytes(policy=SMTP)


class _Login(Login):
    """Takes access tokens too."""

    def __init__(self, config: Config, host: MailHost) -> None:
        super().__init__(config)
        self._host = host

    async def authenticate(self, credentials: Any) -> Any:
        if not isinstance(credentials, ExternalCredentials):
            return await super().authenticate(credentials)
        if credentials.authzid != USER or credentials._token not in self._host.access_tokens:
            raise InvalidAuth
        return self.demo_user_identity


class _Server(IMAPServer):
    def __init__(self, host: MailHost, config: Config) -> None:
        super().__init__(host._login, config)
        self._host, self._own = host, config

    async def __call__(self, reader: Any, writer: Any, sock_info: SocketInfo) -> None:
        self._host.writers.append(writer)
        connection = IMAPConnection(self.commands, self._config, reader, writer, sock_info)
        async with AsyncExitStack() as stack:
            connection_exit.set(stack)
            stack.enter_context(closing(connection))
            await connection.run(_State(self._host, self._own))


class _State(ConnectionState):
    def __init__(self, host: MailHost, config: Config) -> None:
        super().__init__(host._login, config)
        self._host = host

    async def do_command(self, cmd: Any) -> Any:
        self._host.commands.append(bytes(cmd.command))
        return await super().do_command(cmd)

    async def do_fetch(self, cmd: Any) -> Any:
        reads = any(b"BODY" in bytes(each) for each in cmd.attributes)
        wanted = set(cmd.sequence_set.flatten(2**31)) if cmd.uid and reads else set()
        if wanted & self._host.broken_uids:
            raise ConnectionResetError
        if wanted & self._host.refused_uids:
            return ResponseNo(cmd.tag, b"The message cannot be read."), None
        return await super().do_fetch(cmd)
