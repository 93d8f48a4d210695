"""Evidence from the retriever service."""

from groundwork.retriever.v1 import retriever_pb2 as pb
from groundwork.retriever.v1 import retriever_pb2_grpc as rpc

from kit.errors import Cancelled, DeadlineExceeded, Unavailable
from kit.rpc.channel import Channel
from services.orchestrator.errors import SearchSilent
from services.orchestrator.log.events import BoundingBox, Degradation, Evidence, Retrieval
from services.orchestrator.models import SearchQuery

_STRATEGIES = {pb.STRATEGY_DENSE: "dense", pb.STRATEGY_LEXICAL: "lexical", pb.STRATEGY_HYBRID: "hybrid"}
_NUMBERS = {name: number for number, name in _STRATEGIES.items()}


class RetrieverSearcher:
    """Searcher over the retriever's contract."""

    def __init__(self, channel: Channel, *, timeout_s: float) -> None:
        self._stub = rpc.RetrieverServiceStub(channel)
        self._timeout_s = timeout_s

    async def search(self, query: SearchQuery) -> Retrieval:
        request = pb.SearchRequest(
            queries=query.queries,
            collection_ids=query.collection_ids,
            filter=pb.Filter(
                document_ids=query.document_ids,
                metadata=[pb.MetadataCondition(key=key, values=values) for key, values in query.metadata.items()],
            ),
            top_k=query.top_k,
            strategy=_NUMBERS.get(query.strategy, pb.STRATEGY_UNSPECIFIED),
        )
        try:
            response = await self._stub.Search(request, timeout=self._timeout_s)
        except (Unavailable, DeadlineExceeded, Cancelled) as error:  # Cancelled is what a stopping server says
            raise SearchSilent("the search service does not answer; ask again in a minute") from error
        return Retrieval(
            evidence=tuple(evidence_of(number, hit) for number, hit in enumerate(response.hits, start=1)),
            degraded=tuple(Degradation(each.part, each.reason, each.message) for each in response.degraded),
            timings_ms=dict(response.timings_ms),
            strategy=_STRATEGIES.get(response.strategy, ""),
        )


def evidence_of(number: int, hit: pb.Hit) -> Evidence:
    chunk = hit.chunk
    return Evidence(
        number=number,
        chunk_id=chunk.chunk_id,
        document_id=chunk.document_id,
        document_name=chunk.document_name,
        text=chunk.text,
        page=chunk.page,
        heading_path=tuple(chunk.heading_path),
        score=hit.score,
        dense_score=hit.dense_score if hit.HasField("dense_score") else None,
        char_start=chunk.char_start,
        char_end=chunk.char_end,
        bounding_boxes=tuple(BoundingBox(b.page, b.x0, b.y0, b.x1, b.y1) for b in chunk.bounding_boxes),
        collection_id=chunk.collection_id,
    )
