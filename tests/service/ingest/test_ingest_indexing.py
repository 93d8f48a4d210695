"""Chunks on their way to the retriever, over real gRPC."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import numpy as np
import pytest
from groundwork.retriever.v1 import retriever_pb2_grpc

from kit.testing.harness import open_test_channel, running_servicer
from services.ingest.adapters.retriever import RetrieverIndex
from services.ingest.documents.models import Content, Document, Revision, Status
from services.ingest.errors import SpoolFull
from services.ingest.ports import ChunkBatch
from services.ingest.reading.models import Chunk
from tests.service.ingest.backends import FakeRetriever

CONTENT = Content("0" * 64, 1, "text/plain")
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
DOCUMENT = Document("local", "d1", "default", "a.txt", MOMENT, MOMENT, Status.PROCESSING, CONTENT, revision_count=1)
CHUNK = Chunk(0, "text", "text", 0, 4, 0, (), 1, "hash")


@pytest.mark.parametrize("sent", [0, 1])
async def test_what_goes_wrong_while_chunks_are_sent_is_said_and_is_no_cancellation(sent: int) -> None:
    async def batches() -> AsyncIterator[ChunkBatch]:
        for _ in range(sent):
            yield [CHUNK], np.ones((1, 4), np.float32)
        raise SpoolFull("the disk is full")

    add = retriever_pb2_grpc.add_RetrieverServiceServicer_to_server
    async with running_servicer(add, FakeRetriever()) as address, open_test_channel(address) as channel:
        index = RetrieverIndex(retriever_pb2_grpc.RetrieverServiceStub(channel))
        with pytest.raises(SpoolFull, match="the disk is full"):
            await index.index(DOCUMENT, Revision("r1", 1, CONTENT), batches(), 2, "model", to_come=0)
