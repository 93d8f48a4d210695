"""What TLS between services costs a call: the same server and channel with certificates on both sides and without, in turn."""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from groundwork.retriever.v1 import retriever_pb2 as pb
from groundwork.retriever.v1 import retriever_pb2_grpc as rpc

from bench.report import Figure, Part
from evals.samples import Samples
from evals.tables import Table
from kit.network.tls import CertificateSource
from kit.rpc.channel import Channel
from kit.testing.certificates import Authority, CertificateFolder
from kit.testing.harness import open_test_channel, running_servicer

CALLS, BATCH = 2000, 50
"""Of each kind, and how many are made before it is the other's turn."""
CONNECTIONS = 100
_SMALL, _LARGE = 0, 100
"""Hits of an answer: some bytes, and about 200 KB."""
_TIMEOUT_S = 30.0
_PLAIN, _TLS = WAYS = ("without", "with TLS")
Timed = dict[str, list[float]]


class _Hits(rpc.RetrieverServiceServicer):
    """Answers with as many hits as were asked for."""

    async def Search(self, request: pb.SearchRequest, *_: object) -> pb.SearchResponse:  # noqa: N802 - the contract's name
        hit = pb.Hit(chunk=pb.Chunk(text="x" * 2000))
        return pb.SearchResponse(strategy=pb.STRATEGY_HYBRID, hits=[hit] * request.top_k)


def measure() -> Part:
    """Milliseconds of calls and of new connections, by way."""
    small, large, connecting = asyncio.run(_measure())
    rows = {
        "call, small answer": small,
        "call, answer of 200 KB": large,
        "new connection and its first call": connecting,
    }
    return Part(
        title="TLS between services",
        about=(
            f"{CALLS} searches of a server in the same process, whose answers are empty or have 100 hits, {BATCH} in turn with and "
            f"without certificates on both sides (P-256, TLS 1.3), and {CONNECTIONS} new channels with their first call. Client "
            "and server share one event loop, so the time is that of both."
        ),
        figures=[Figure(f"{name}: with TLS ÷ without", _compared(timed)) for name, timed in rows.items()],
        tables=(
            Table(
                ("", *(f"{way}, ms" for way in WAYS)),
                [(name, *(Samples.of(timed[way]).spread(2) for way in WAYS)) for name, timed in rows.items()],
            ),
        ),
    )


def _compared(timed: Timed) -> str:
    plain, tls = (Samples.of(timed[way]) for way in WAYS)
    return f"{tls.median / plain.median:.2f} ({tls.median - plain.median:+.2f} ms)"


async def _measure() -> tuple[Timed, Timed, Timed]:
    with tempfile.TemporaryDirectory(prefix="groundwork-bench-") as folder:
        authority = Authority()
        source = CertificateFolder(Path(folder), authority.issue(), [authority]).source()
        ways: dict[str, CertificateSource | None] = {_PLAIN: None, _TLS: source}
        async with AsyncExitStack() as stack:
            addresses, channels = {}, {}
            servicer = _Hits()  # type: ignore[abstract] # it is asked for nothing else
            for way, certificates in ways.items():
                serving = running_servicer(rpc.add_RetrieverServiceServicer_to_server, servicer, certificates)
                addresses[way] = await stack.enter_async_context(serving)
                channels[way] = await stack.enter_async_context(
                    open_test_channel(addresses[way], certificates=certificates)
                )

            async def connect(way: str) -> None:
                async with open_test_channel(addresses[way], certificates=ways[way]) as channel:
                    await _search(channel, _SMALL)

            return (
                await _in_turn(lambda way: _search(channels[way], _SMALL), CALLS, BATCH),
                await _in_turn(lambda way: _search(channels[way], _LARGE), CALLS, BATCH),
                await _in_turn(connect, CONNECTIONS, 1),
            )


async def _search(channel: Channel, hits: int) -> None:
    await rpc.RetrieverServiceStub(channel).Search(pb.SearchRequest(top_k=hits), timeout=_TIMEOUT_S)


async def _in_turn(work: Callable[[str], Awaitable[None]], times: int, batch: int) -> Timed:
    timed: Timed = {way: [] for way in WAYS}
    for way in WAYS:
        await work(way)
    for _ in range(times // batch):
        for way in WAYS:
            for _ in range(batch):
                began = time.perf_counter()
                await work(way)
                timed[way].append(1000 * (time.perf_counter() - began))
    return timed
