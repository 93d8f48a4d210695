"""The retriever service, asked in the name of the tool's caller."""

from collections.abc import Sequence

from groundwork.retriever.v1 import retriever_pb2 as pb
from groundwork.retriever.v1 import retriever_pb2_grpc as rpc

from kit.rpc.channel import Channel
from services.tools.adapters.services.refusals import put_plainly
from services.tools.models import Passage
from services.tools.passages.retrieval import Degradation, Found, SearchQuery, Section, Strategy, Window

_TIMEOUT_S = 4.5
"""Less than a tool may take, so that the tool can say who did not answer."""
_SERVICE, _AWAY = "the search", "SEARCH_UNAVAILABLE"
_STRATEGIES = {
    Strategy.AUTO: pb.STRATEGY_UNSPECIFIED,
    Strategy.DENSE: pb.STRATEGY_DENSE,
    Strategy.LEXICAL: pb.STRATEGY_LEXICAL,
    Strategy.HYBRID: pb.STRATEGY_HYBRID,
}
_NAMES = {number: str(strategy) for strategy, number in _STRATEGIES.items() if number != pb.STRATEGY_UNSPECIFIED}


class RetrieverPassages:
    """Retriever over the retriever's contract."""

    def __init__(self, channel: Channel, *, timeout_s: float = _TIMEOUT_S) -> None:
        self._stub = rpc.RetrieverServiceStub(channel)
        self._timeout_s = timeout_s

    async def search(self, query: SearchQuery) -> Found:
        with put_plainly(_SERVICE, _AWAY):
            response = await self._stub.Search(_search_request(query), timeout=self._timeout_s)
        return Found(
            tuple(passage_of(hit) for hit in response.hits),
            tuple(Degradation(each.part, each.reason, each.message) for each in response.degraded),
            _NAMES.get(response.strategy, ""),
        )

    async def fetch(self, chunk_ids: Sequence[str], window: int = 0) -> Sequence[Window]:
        request = pb.FetchChunksRequest(chunk_ids=chunk_ids, window=window)
        return [_window(each) for each in (await self._fetched(request)).chunks]

    async def section(self, document_id: str, first_ordinal: int, chunk_count: int) -> Section:
        request = pb.FetchChunksRequest(document_id=document_id, first_ordinal=first_ordinal, chunk_count=chunk_count)
        response = await self._fetched(request)
        return Section([_window(each).passage for each in response.chunks], response.document_chunk_count)

    async def _fetched(self, request: pb.FetchChunksRequest) -> pb.FetchChunksResponse:
        with put_plainly(_SERVICE, _AWAY):
            return await self._stub.FetchChunks(request, timeout=self._timeout_s)


def _search_request(query: SearchQuery) -> pb.SearchRequest:
    conditions = [pb.MetadataCondition(key=key, values=values) for key, values in query.metadata.items()]
    request = pb.SearchRequest(
        queries=query.queries,
        collection_ids=query.collection_ids,
        filter=pb.Filter(document_ids=query.document_ids, metadata=conditions),
        top_k=query.top_k,
        strategy=_STRATEGIES[query.strategy],
        must_phrases=query.must_phrases,
    )
    if query.date_from is not None:
        request.filter.date_from.FromDatetime(query.date_from)
    if query.date_to is not None:
        request.filter.date_to.FromDatetime(query.date_to)
    return request


def _window(message: pb.ChunkWindow) -> Window:
    before, after = ([passage_of(pb.Hit(chunk=chunk)) for chunk in side] for side in (message.before, message.after))
    return Window(passage_of(pb.Hit(chunk=message.chunk)), before, after)


def passage_of(hit: pb.Hit) -> Passage:
    chunk = hit.chunk
    return Passage(
        chunk.chunk_id,
        chunk.document_id,
        chunk.document_name,
        chunk.collection_id,
        chunk.text,
        chunk.page,
        tuple(chunk.heading_path),
        hit.score,
        ordinal=chunk.ordinal,
        metadata=dict(chunk.metadata),
        content_hash=chunk.content_hash,
        hit=hit,
    )
