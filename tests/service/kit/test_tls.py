"""TLS between services: who is refused, and certificates that are replaced while calls are made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc
from groundwork.memory.v1 import memory_pb2, memory_pb2_grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from kit.errors import Unavailable
from kit.network.tls import BadCertificates
from kit.process.service import Service
from kit.process.settings import ServiceSettings
from kit.rpc.channel import Channel
from kit.rpc.credentials import CertificateExpiry
from kit.testing.certificates import LOOPBACK, Authority, CertificateFolder, shown_by
from kit.testing.harness import free_port, open_test_channel, public_keys_text, running_service
from tests.service.kit.callers import Callers
from tests.service.kit.served import CONTRACTS, Servicer, serve

NEVER_S = 600.0
MANY = 200
A_DAY = timedelta(days=1)


class Pair:
    """A server and a client with certificates of one authority."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority()
        self.server = CertificateFolder(folder / "server", self.authority.issue("server"), [self.authority])
        self.client = CertificateFolder(folder / "client", self.authority.issue("client"), [self.authority])
        self.servicer = Servicer()
        self.port = 0

    @asynccontextmanager
    async def served(self, **options: Any) -> AsyncIterator[str]:
        server, self.port = await serve(self.servicer, public_keys_text(), certificates=self.server.source(), **options)
        try:
            yield f"127.0.0.1:{self.port}"
        finally:
            await server.stop(None)

    @asynccontextmanager
    async def connected(self, **options: Any) -> AsyncIterator[Channel]:
        async with (
            self.served(**options) as address,
            open_test_channel(
                address, services=CONTRACTS, patience_s=NEVER_S, certificates=self.client.source()
            ) as channel,
        ):
            yield channel


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


async def ask(channel: Channel, name: str = "t") -> str:
    request = memory_pb2.GetThreadRequest(thread_id=name)
    answer = await memory_pb2_grpc.MemoryServiceStub(channel).GetThread(request, timeout=60)
    return str(answer.thread.thread_id)


async def until(condition: Callable[[], bool], callers: Callers) -> None:
    """Waits while calls go on."""
    async with asyncio.timeout(60):
        while not condition():
            await callers.have_called(1)


async def test_services_with_certificates_of_one_authority_reach_each_other(pair: Pair) -> None:
    async with pair.connected() as channel:
        assert await ask(channel) == "t"
    assert pair.servicer.shown == {pair.client.cert_file.read_bytes()}


@pytest.mark.parametrize("case", ["of another authority", "expired"])
async def test_client_with_a_certificate_that_is_no_good_is_refused(pair: Pair, case: str) -> None:
    foreign = case == "of another authority"
    pair.client.put((Authority() if foreign else pair.authority).issue(lasts=A_DAY if foreign else -A_DAY))
    await _is_refused(pair)


@pytest.mark.parametrize("case", ["of another authority", "expired", "of another host"])
async def test_server_with_a_certificate_that_is_no_good_is_not_called(pair: Pair, case: str) -> None:
    issue = (Authority() if case == "of another authority" else pair.authority).issue
    hosts = ["retriever", "127.0.0.2"] if case == "of another host" else LOOPBACK
    pair.server.put(issue(hosts=hosts, lasts=-A_DAY if case == "expired" else A_DAY))
    error = await _is_refused(pair)
    assert error.reason == "TLS_FAILED"
    assert "names the host that we call" in error.message


async def _is_refused(pair: Pair) -> Unavailable:
    certificates = pair.client.source()
    async with (
        pair.served() as address,
        open_test_channel(address, patience_s=0, certificates=certificates) as channel,
    ):
        with pytest.raises(Unavailable) as caught:
            await ask(channel)
    assert not pair.servicer.shown
    return caught.value


@pytest.mark.parametrize("with_tls", [True, False])
async def test_client_without_a_certificate_is_refused(pair: Pair, with_tls: bool) -> None:
    async with pair.served() as address:
        trusting = grpc.ssl_channel_credentials(pair.authority.pem)
        channel = grpc.aio.secure_channel(address, trusting) if with_tls else grpc.aio.insecure_channel(address)
        async with channel:
            stub: Any = health_pb2_grpc.HealthStub(channel)  # type: ignore[no-untyped-call]
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await stub.Check(health_pb2.HealthCheckRequest(), timeout=60)
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_channel_with_certificates_does_not_speak_to_a_server_without(pair: Pair) -> None:
    server, port = await serve(pair.servicer, public_keys_text())
    async with open_test_channel(f"127.0.0.1:{port}", patience_s=0, certificates=pair.client.source()) as channel:
        with pytest.raises(Unavailable) as caught:
            await ask(channel)
    assert caught.value.reason == "TLS_FAILED"
    await server.stop(None)
    assert not pair.servicer.shown


async def test_several_addresses_are_verified_by_the_first(pair: Pair) -> None:
    """gRPC itself would look for all of them, in one word, in each certificate."""
    pair.server.put(pair.authority.issue(hosts=["127.0.0.1"]))
    second, port = await serve(pair.servicer, public_keys_text(), host="127.0.0.2", certificates=pair.server.source())
    async with (
        pair.served() as address,
        open_test_channel(f"{address},127.0.0.2:{port}", certificates=pair.client.source()) as channel,
    ):
        assert [await ask(channel, str(turn)) for turn in range(4)] == ["0", "1", "2", "3"]
    await second.stop(None)


async def test_new_certificates_are_taken_under_traffic_and_no_call_fails(pair: Pair) -> None:
    before = pair.client.cert_file.read_bytes()
    async with pair.connected() as channel:
        callers = Callers(channel)
        async with callers.at_work():
            await callers.have_called(MANY)
            pair.client.put(pair.authority.issue("client, renewed"))
            pair.server.put(pair.authority.issue("server, renewed"))
            after = pair.client.cert_file.read_bytes()
            await until(lambda: after in pair.servicer.shown, callers)
            await callers.have_called()  # what was in hand has ended
            pair.servicer.shown.clear()
            await callers.have_called(MANY)
        shown = await asyncio.to_thread(shown_by, f"127.0.0.1:{pair.port}", pair.client)
        assert shown == pair.server.cert_file.read_bytes()
    assert not any(callers.failed.values())
    assert pair.servicer.shown == {after} != {before}
    assert set(pair.servicer.done.values()) == {1}, "nothing was carried out twice"


async def test_authority_is_replaced_under_traffic_and_no_call_fails(pair: Pair) -> None:
    """Both trust both; then each gets a certificate of the new one; then only the new one is trusted. Connections are renewed all
    the while."""
    old, new = pair.authority, Authority("new")
    async with pair.connected(max_connection_age_s=0.5) as channel:
        callers = Callers(channel)
        async with callers.at_work():
            await callers.have_called(MANY)
            await _changed(pair, callers, lambda folder: folder.trust(old, new))
            await _changed(pair, callers, lambda folder: folder.put(new.issue()))
            await until(lambda: pair.client.cert_file.read_bytes() in pair.servicer.shown, callers)
            await _changed(pair, callers, lambda folder: folder.trust(new))
            await callers.have_called(MANY)
        assert not any(callers.failed.values())
        pair.client.put(old.issue())
        pair.client.trust(new)
        address, of_old = f"127.0.0.1:{pair.port}", pair.client.source()
        async with open_test_channel(address, patience_s=0, certificates=of_old) as refused:
            with pytest.raises(Unavailable):
                await ask(refused)


async def _changed(pair: Pair, callers: Callers, change: Callable[[CertificateFolder], None]) -> None:
    """Changes the files of both. Returns once both have read them, which each logs."""
    with capture_logs() as logs:
        for folder in (pair.server, pair.client):
            change(folder)
        await until(lambda: sum(line["event"] == "files_read" for line in logs) >= 2, callers)


async def test_broken_files_change_nothing_and_are_logged_once(pair: Pair) -> None:
    async with pair.connected() as channel:
        callers = Callers(channel)
        async with callers.at_work():
            with capture_logs() as logs:
                pair.client.key_file.write_text("cut off")
                await until(lambda: any(line["event"] == "files_not_read" for line in logs), callers)
            with capture_logs() as later:
                await callers.have_called(MANY)
                await asyncio.sleep(1.5)  # another look is due after 1 s
                pair.client.put(pair.authority.issue("mended"))
                await until(lambda: pair.client.cert_file.read_bytes() in pair.servicer.shown, callers)
    assert not any(callers.failed.values())
    assert "holds no private key" in next(line["error"] for line in logs if line["event"] == "files_not_read")
    assert [line["event"] for line in later if line["event"].startswith("files")] == ["files_read"]


async def test_a_certificate_that_servers_refuse_does_not_take_over(pair: Pair) -> None:
    async with pair.connected() as channel:
        callers = Callers(channel)
        async with callers.at_work():
            with capture_logs() as logs:
                pair.client.put(Authority("unknown").issue())
                await until(lambda: any(line["event"] == "files_read" for line in logs), callers)
                await callers.have_called(MANY)
            pair.client.put(pair.authority.issue("good again"))
            await until(lambda: pair.client.cert_file.read_bytes() in pair.servicer.shown, callers)
    assert not any(callers.failed.values())
    assert not [line for line in logs if line["event"] == "channel_renewed"]


async def test_a_stream_in_hand_goes_on_over_the_connection_that_it_began_on(pair: Pair) -> None:
    gate = asyncio.Event()

    class Watched(Servicer):
        async def WatchDocuments(self, request: Any, context: Any) -> AsyncIterator[ingest_pb2.WatchDocumentsResponse]:
            yield ingest_pb2.WatchDocumentsResponse(snapshot_complete=True)
            await gate.wait()
            yield ingest_pb2.WatchDocumentsResponse(snapshot_complete=False)

    pair.servicer = Watched()
    async with pair.connected() as channel:
        stream = ingest_pb2_grpc.IngestServiceStub(channel).WatchDocuments(
            ingest_pb2.WatchDocumentsRequest(), timeout=60
        )
        assert (await anext(stream)).snapshot_complete
        callers = Callers(channel)
        async with callers.at_work():
            pair.client.put(pair.authority.issue("renewed"))
            await until(lambda: pair.client.cert_file.read_bytes() in pair.servicer.shown, callers)
        gate.set()
        assert [each.snapshot_complete async for each in stream] == [False]


async def test_a_service_speaks_tls_by_its_settings(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"127.0.0.1:{free_port()}"
    for name, value in pair.server.environment().items():
        monkeypatch.setenv(name, value)
    settings = ServiceSettings(grpc_address=address, drain_delay_s=0, drain_grace_s=0)

    async def run(settings: ServiceSettings) -> None:
        async with Service("test", settings) as service:
            channel = await service.channel(address)
            assert channel is not None
            await service.serve()

    async with running_service(run, settings), grpc.aio.insecure_channel(address) as plain:
        stub: Any = health_pb2_grpc.HealthStub(plain)  # type: ignore[no-untyped-call]
        with pytest.raises(grpc.aio.AioRpcError):
            await stub.Check(health_pb2.HealthCheckRequest(), timeout=60)


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (timedelta(days=2), None),
        (timedelta(hours=2), "expires at"),
        (timedelta(0), "no new connection can be made"),
    ],
)
def test_a_certificate_that_is_not_renewed_in_time_is_told_of(pair: Pair, left: timedelta, said: str | None) -> None:
    source = pair.server.source()
    at = source.current().not_after - left
    troubles = CertificateExpiry(source, now=lambda: at).troubles()
    if said is None:
        assert not troubles
    else:
        assert said in troubles[0].message
        assert not troubles[0].stops_service
    assert source.current().not_after > datetime.now(UTC)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("cert_file", "nothing", "holds no certificate"),
        ("key_file", "nothing", "holds no private key"),
        ("ca_file", "", "holds no certificate"),
        ("ca_file", None, "No such file"),
    ],
)
def test_files_that_cannot_be_used_are_named_at_the_start(
    pair: Pair, name: str, content: str | None, said: str
) -> None:
    path: Path = getattr(pair.server, name)
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    with pytest.raises(BadCertificates, match=said) as caught:
        pair.server.source()
    assert str(path) in caught.value.message


def test_a_key_that_does_not_belong_to_the_certificate_is_named_at_the_start(pair: Pair) -> None:
    pair.server.key_file.write_bytes(pair.authority.issue()[1])
    with pytest.raises(BadCertificates, match="does not belong to the certificate"):
        pair.server.source()
