"""The ingest service, asked in the name of whoever called the tool."""

from collections.abc import Sequence

from groundwork.ingest.v1 import ingest_pb2 as pb
from groundwork.ingest.v1 import ingest_pb2_grpc as rpc

from kit.channel import Channel
from services.tools.adapters.refusals import put_plainly

_SERVICE = "the store of documents"
_TIMEOUT_S = 4.0


class IngestDocuments:
    """Documents over the ingest service's contract."""

    def __init__(self, channel: Channel) -> None:
        self._stub = rpc.IngestServiceStub(channel)

    async def collection_ids(self) -> Sequence[str]:
        with put_plainly(_SERVICE):
            response: pb.ListCollectionsResponse = await self._stub.ListCollections(
                pb.ListCollectionsRequest(), timeout=_TIMEOUT_S
            )
        return [each.collection_id for each in response.collections]
