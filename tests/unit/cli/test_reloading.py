"""`groundwork cluster reload`, beside a real nats-server that has TLS."""

from __future__ import annotations

import asyncio
import ssl
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cli.operating.reloading import Reloader
from kit.testing.certificates import Authority, CertificateFolder
from kit.testing.nats import NatsServer, nats_server

_SLEEPER = """\
import signal
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # who ran the tests may have it ignored
print("ready", flush=True)
signal.pause()
"""


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture
def certificate(authority: Authority, tmp_path: Path) -> CertificateFolder:
    return CertificateFolder(tmp_path / "tls", authority.issue(), [authority])


@pytest.fixture
async def server(certificate: CertificateFolder) -> AsyncIterator[NatsServer]:
    files = (
        f'cert_file: "{certificate.cert_file}", key_file: "{certificate.key_file}", ca_file: "{certificate.ca_file}"'
    )
    async with nats_server(f"tls {{ {files}, handshake_first: true }}\n") as server:
        yield server


async def shown(server: NatsServer, certificate: CertificateFolder) -> int:
    """Serial number of the certificate that a new connection is shown."""
    context = await asyncio.to_thread(ssl.create_default_context, cafile=str(certificate.ca_file))
    _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
    try:
        return int(writer.get_extra_info("peercert")["serialNumber"], 16)
    finally:
        writer.close()


async def test_new_certificates_are_shown_without_a_restart(
    server: NatsServer, certificate: CertificateFolder, authority: Authority, tmp_path: Path
) -> None:
    assert server.process is not None
    pid_file = tmp_path / "nats.pid"
    pid_file.write_text(str(server.process.pid))
    reported: list[str] = []
    reloader = Reloader([certificate.cert_file, certificate.key_file], pid_file, reported.append)
    reloader.look()
    before = await shown(server, certificate)
    reloader.look()
    assert len(reported) == 1, "nothing has changed"
    certificate.put(authority.issue())
    reloader.look()
    async with asyncio.timeout(60):
        while await shown(server, certificate) == before:
            reloader.look()
    assert len(reported) == 2
    assert server.process.returncode is None


async def test_a_server_that_is_not_there_yet_is_signalled_later(
    certificate: CertificateFolder, tmp_path: Path
) -> None:
    reported: list[str] = []
    reloader = Reloader([certificate.cert_file], tmp_path / "nats.pid", reported.append)
    reloader.look()
    assert "did not get the signal" in reported[0]
    sleeper = await asyncio.create_subprocess_exec(sys.executable, "-c", _SLEEPER, stdout=PIPE)
    assert sleeper.stdout is not None
    await sleeper.stdout.readline()
    (tmp_path / "nats.pid").write_text(str(sleeper.pid))
    reloader.look()
    assert "got the signal" in reported[1]
    assert await sleeper.wait() == -1, "ended by SIGHUP"
