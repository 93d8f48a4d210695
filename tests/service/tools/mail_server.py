"""A real SMTP server (aiosmtpd) on the test's own event loop, with a certificate made for it."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PASSWORD = "correct horse"


@dataclass
class MailServer:
    """What it does is set before it is asked."""

    delivered: list[tuple[list[str], EmailMessage]] = field(default_factory=list)
    """Envelope recipients and message, of each e-mail that it took."""
    logins: list[str] = field(default_factory=list)
    refuses: tuple[str, ...] = ()
    """Recipients that it does not take."""
    answer: str = "250 taken"
    """To the text."""
    hangs_up: bool = False
    """Takes the text and dies before it answers."""
    silent: asyncio.Event | None = None
    """Takes the text and answers once this is set."""
    port: int = 0

    async def handle_RCPT(self, server: SMTP, _: Session, envelope: Envelope, address: str, __: list[str]) -> str:
        if address in self.refuses:
            return "550 5.1.1 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, _: Session, envelope: Envelope) -> str:
        assert isinstance(envelope.content, bytes)
        message = message_from_bytes(envelope.content, policy=default)
        assert isinstance(message, EmailMessage)
        if self.answer.startswith("2"):
            self.delivered.append((list(envelope.rcpt_tos), message))
        if self.hangs_up:
            assert server.transport is not None
            server.transport.abort()
        if self.silent is not None:
            await self.silent.wait()
        return self.answer

    def authenticate(self, _: SMTP, __: Session, ___: Envelope, mechanism: str, credentials: Any) -> AuthResult:
        assert isinstance(credentials, LoginPassword)
        self.logins.append(credentials.login.decode())
        return AuthResult(success=credentials.password.decode() == PASSWORD, handled=False)


@asynccontextmanager
async def mail_server(
    server: MailServer, tls: str = "none", certificate: Path | None = None
) -> AsyncIterator[MailServer]:
    """Listens on a free port of 127.0.0.1; `tls` is that of the settings."""
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)

    def connection() -> SMTP:
        return SMTP(
            server,
            hostname="mail.example.com",  # else it asks the resolver
            tls_context=context if tls == "starttls" else None,
            require_starttls=tls == "starttls",
            auth_require_tls=tls == "starttls",
            authenticator=server.authenticate,
            loop=asyncio.get_running_loop(),
        )

    listening = await asyncio.get_running_loop().create_server(
        connection, "127.0.0.1", 0, ssl=context if tls == "tls" else None
    )
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await listening.wait_closed()


def make_certificate(path: Path) -> Path:
    """A certificate for 127.0.0.1 that vouches for itself, with its key, in one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mail.example.com")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    return path
