"""The retriever tells every model server which texts are gone."""

from __future__ import annotations

import asyncio

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

    monkeypatch.setattr(model_server, "resolved", two_replicas)
    await local.publish("r1", ["solar panels"], content_hash="ab" * 32)
    await local.stub.DeleteDocument(pb.DeleteDocumentRequest(document_id="d1"), timeout=60)
    async with asyncio.timeout(60):
        await models.has_forgotten.wait()
    assert models.forgotten == {"ab" * 32}
    assert models.tenants == ["local"]
