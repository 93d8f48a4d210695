"""The retriever service, asked in the name of whoever called the tool."""

from groundwork.retriever.v1 import retriever_pb2_grpc as rpc

from kit.channel import Channel


class RetrieverPassages:
    """Retriever over the retriever's contract."""

    def __init__(self, channel: Channel) -> None:
        self._stub = rpc.RetrieverServiceStub(channel)
