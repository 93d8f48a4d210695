"""Two subjects of one tenant over the real processes: each has the same file in a collection of their own and asks the same
question."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from google.protobuf.descriptor import FileDescriptor
from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc
from groundwork.orchestrator.v1 import orchestrator_pb2, orchestrator_pb2_grpc
from groundwork.retriever.v1 import retriever_pb2, retriever_pb2_grpc

from kit.access.keys import KeySource, parse_signing_key
from kit.access.principal import INGEST, QUERY, Principal, use_principal
from kit.access.tokens import TokenSigner
from kit.errors import NotFound
from kit.rpc.channel import open_channel
from tests.integration.api import Api
from tests.integration.system import Groundwork

TIMEOUT_S = 300.0
FILE = b"The ferry Wangerooge was docked for nine weeks because of a cracked propeller shaft.\n"
QUESTION = "Why was the ferry Wangerooge docked?"


class Subject:
    """A user with the scopes of an ordinary key, who calls the services as the gateway would for them."""

    def __init__(self, name: str, stubs: dict[str, Any]) -> None:
        self.principal = Principal("local", name, frozenset({QUERY, INGEST}))
        self._stubs = stubs

    async def call(self, service: str, method: str, request: Any) -> Any:
        with use_principal(self.principal):
            return await getattr(self._stubs[service], method)(request, timeout=TIMEOUT_S)

    async def new_collection(self) -> str:
        request = ingest_pb2.CreateCollectionRequest(name="Ferries")
        return str((await self.call("ingest", "CreateCollection", request)).collection.collection_id)

    async def ingest(self, collection_id: str, data: bytes) -> str:
        header = ingest_pb2.UploadHeader(collection_id=collection_id, name="ferry.txt")
        parts = [
            ingest_pb2.UploadDocumentRequest(header=header),
            ingest_pb2.UploadDocumentRequest(data=data),
            ingest_pb2.UploadDocumentRequest(end=ingest_pb2.UploadEnd(size_bytes=len(data))),
        ]
        document = (await self.call("ingest", "UploadDocument", iter(parts))).document
        request = ingest_pb2.WatchDocumentsRequest(document_ids=[document.document_id])
        with use_principal(self.principal):
            changes = self._stubs["ingest"].WatchDocuments(request, timeout=TIMEOUT_S)
            async for change in changes:
                if change.document.status == ingest_pb2.DOCUMENT_STATUS_READY:
                    break
            await changes.aclose()
        return str(document.document_id)

    async def found(self, *collection_ids: str) -> list[str]:
        request = retriever_pb2.SearchRequest(queries=[QUESTION], collection_ids=collection_ids)
        return [hit.chunk.document_id for hit in (await self.call("retriever", "Search", request)).hits]

    async def cited(self, *collection_ids: str) -> list[str]:
        """Documents that the answer to the question cites."""
        request = orchestrator_pb2.StartRunRequest(
            mode=orchestrator_pb2.RUN_MODE_QA, question=QUESTION, collection_ids=collection_ids
        )
        cited: list[str] = []
        with use_principal(self.principal):
            async for response in self._stubs["orchestrator"].StartRun(request, timeout=TIMEOUT_S):
                cited += [each.document_id for each in response.event.answer.citations]
        return cited


@asynccontextmanager
async def subjects(system: Groundwork, *names: str) -> AsyncIterator[list[Subject]]:
    system.keys.add("test-owners", ["ingest/*", "retriever/*", "orchestrator/*"])
    key = system.keys.signing_key_file("test-owners")
    signer = TokenSigner(KeySource(parse_signing_key, path=key, setting="test"))
    contracts: dict[str, tuple[FileDescriptor, Any]] = {
        "ingest": (ingest_pb2.DESCRIPTOR, ingest_pb2_grpc.IngestServiceStub),
        "retriever": (retriever_pb2.DESCRIPTOR, retriever_pb2_grpc.RetrieverServiceStub),
        "orchestrator": (orchestrator_pb2.DESCRIPTOR, orchestrator_pb2_grpc.OrchestratorServiceStub),
    }
    async with AsyncExitStack() as stack:
        stubs = {}
        for name, (descriptor, stub) in contracts.items():
            services = list(descriptor.services_by_name.values())
            address = system.service(name)["address"]
            stubs[name] = stub(await stack.enter_async_context(open_channel(address, signer, services)))
        yield [Subject(name, stubs) for name in names]


async def test_each_is_answered_from_their_own_documents_alone(system: Groundwork, api: Api) -> None:
    async with subjects(system, "ann", "bob") as (ann, bob):
        anns, bobs = await ann.new_collection(), await bob.new_collection()
        assert anns != bobs, "a name that is taken by a collection which one cannot see makes a free id"
        own, other = await ann.ingest(anns, FILE), await bob.ingest(bobs, FILE)
        assert own != other

        for subject, document_id, foreign in ((ann, own, bobs), (bob, other, anns)):
            assert await subject.found(anns, bobs) == [document_id]
            assert await subject.found(foreign) == []
            assert set(await subject.cited(anns, bobs)) == {document_id}
            assert await subject.cited(foreign) == []
        with pytest.raises(NotFound):
            await bob.call("ingest", "GetDocument", ingest_pb2.GetDocumentRequest(document_id=own))

        # The local user of an installation without keys sees all, as before there were owners.
        assert {each["id"] for each in api.get("/v1/collections")["collections"]} >= {anns, bobs, "default"}
        assert api.get(f"/v1/documents/{own}")["status"] == "ready"

        share = ingest_pb2.UpdateCollectionRequest(
            collection_id=anns, visibility=ingest_pb2.COLLECTION_VISIBILITY_TENANT
        )
        await ann.call("ingest", "UpdateCollection", share)
        assert await bob.found(anns) == [own]
        assert set(await bob.cited(anns)) == {own}
