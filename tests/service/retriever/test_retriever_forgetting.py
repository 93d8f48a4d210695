"""The retriever tells every model server which texts are gone."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from groundwork.retriever.v1 import retriever_pb2 as pb

from kit.testing.harness import free_port
from services.retriever.adapters import model_server
from tests.service.retriever.conftest import FakeModelServer, Retriever


async def test_texts_of_a_deleted_document_are_forgotten_by_every_model_server_that_answers(
    local: Retriever, models: FakeModelServer, models_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def two_replicas(address: str) -> list[str]:
        assert address == models_address
        return [f"127.0.0.1:{free_port()}", models_address]

    monkeypatch.setattr(model_server, "_replicas", two_replicas)
    await local.publish("r1", ["solar panels"], content_hash="ab" * 32)
    await local.stub.DeleteDocument(pb.DeleteDocumentRequest(document_id="d1"), timeout=5)
    async with asyncio.timeout(30):
        await models.has_forgotten.wait()
    assert models.forgotten == {"ab" * 32}
    assert models.tenants == ["local"]


async def test_replicas_are_the_addresses_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolved(host: str, port: int, **_: Any) -> list[Any]:
        assert (host, port) == ("reranker", 7001)
        v4 = [(socket.AF_INET, 1, 6, "", (where, port)) for where in ("10.0.0.1", "10.0.0.2", "10.0.0.1")]
        return [(socket.AF_INET6, 1, 6, "", ("fd00::1", port, 0, 0)), *v4]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolved)
    assert await model_server._replicas("reranker:7001") == ["10.0.0.1:7001", "10.0.0.2:7001"]
    assert await model_server._replicas("unix:/run/reranker.sock") == ["unix:/run/reranker.sock"]
