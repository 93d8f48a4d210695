"""The status of a call whose requests are a stream, when a write to it fails after the server has ended it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc

from kit.errors import Unavailable
from kit.rpc.status import answer_of, from_rpc_error
from tests.service.kit.served import Servicer

SAID = "Cancelling all calls"


class Ending(Servicer):
    async def UploadDocument(self, request_iterator: Any, context: Any) -> ingest_pb2.UploadDocumentResponse:
        await context.abort(grpc.StatusCode.UNAVAILABLE, SAID, (("mark", "1"),))
        raise AssertionError("not reached")


async def endless() -> AsyncIterator[ingest_pb2.UploadDocumentRequest]:
    while True:
        yield ingest_pb2.UploadDocumentRequest(data=b"x" * 1_000_000)


async def parts() -> AsyncIterator[ingest_pb2.UploadDocumentRequest]:
    yield ingest_pb2.UploadDocumentRequest(header=ingest_pb2.UploadHeader(name="a"))
    await asyncio.Event().wait()


@asynccontextmanager
async def server_that_ends() -> AsyncIterator[str]:
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    ingest_pb2_grpc.add_IngestServiceServicer_to_server(Ending(), server)  # type: ignore[abstract]
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(None)
    del server  # while its loop runs, which its destructor needs


async def test_a_write_that_fails_later_does_not_hide_the_status_of_the_call() -> None:
    async with server_that_ends() as address, grpc.aio.insecure_channel(address) as channel:
        call = ingest_pb2_grpc.IngestServiceStub(channel).UploadDocument(parts(), timeout=60)
        asked = asyncio.ensure_future(answer_of(call))
        await asyncio.sleep(0)
        is_overwriting = False

        def overwrite(ended: Any) -> None:
            """Whatever has ended the call; what is set here calls back, too."""
            nonlocal is_overwriting
            if not is_overwriting:
                is_overwriting = True
                ended._cython_call.set_internal_error("as grpc.aio does when a write fails")
                is_overwriting = False

        call.add_done_callback(overwrite)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await asked
        assert await call.code() is grpc.StatusCode.INTERNAL, "what grpc.aio itself would say"
    assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.UNAVAILABLE, SAID)
    assert dict(caught.value.trailing_metadata()) == {"mark": "1"}


async def test_status_of_a_call_that_the_server_ends_while_it_is_sent_is_not_lost() -> None:
    async with server_that_ends() as address, grpc.aio.insecure_channel(address) as channel:
        stub = ingest_pb2_grpc.IngestServiceStub(channel)
        calls = (answer_of(stub.UploadDocument(endless(), timeout=60)) for _ in range(40))
        ends = await asyncio.gather(*calls, return_exceptions=True)
    assert {(each.code(), each.details()) for each in ends if isinstance(each, grpc.aio.AioRpcError)} == {
        (grpc.StatusCode.UNAVAILABLE, SAID)
    }
    assert len(ends) == 40


def test_a_failed_write_without_a_status_is_a_broken_connection() -> None:
    nothing = grpc.aio.Metadata()
    error = grpc.aio.AioRpcError(grpc.StatusCode.INTERNAL, nothing, nothing, "Internal error from Core")
    translated = from_rpc_error(error)
    assert isinstance(translated, Unavailable)
    assert (translated.reason, translated.retryable) == ("RPC_UNAVAILABLE", True)
