"""The ingest service, asked in the name of whoever called the tool."""

from groundwork.ingest.v1 import ingest_pb2_grpc as rpc

from kit.channel import Channel


class IngestDocuments:
    """Documents over the ingest service's contract."""

    def __init__(self, channel: Channel) -> None:
        self._stub = rpc.IngestServiceStub(channel)
