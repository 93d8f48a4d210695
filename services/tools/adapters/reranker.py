"""The reranker service, asked in the name of whoever called the tool."""

from groundwork.reranker.v1 import reranker_pb2_grpc as rpc

from kit.channel import Channel


class RerankerModels:
    """ModelServer over the model server's contract."""

    def __init__(self, channel: Channel) -> None:
        self._stub = rpc.RerankerServiceStub(channel)
