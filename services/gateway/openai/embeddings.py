"""Embeddings in the shape of OpenAI's API, made by the model server that also embeds documents and queries."""

import base64
from array import array

from fastapi import APIRouter
from fastapi.responses import JSONResponse
from groundwork.reranker.v1 import reranker_pb2 as pb

from services.gateway.access.scopes import NEEDS_QUERY
from services.gateway.backends import Services
from services.gateway.errors import ModelNotOffered, UnsupportedParameter
from services.gateway.openai.errors import OpenAiRoute
from services.gateway.openai.replies import reply
from services.gateway.openai.stores.requests import EmbeddingsRequest
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1", tags=["openai"], route_class=OpenAiRoute)

EMBEDDING = "groundwork/embedding"
"""The model that new documents are embedded with, whichever that is."""
_TEXTS_AT_ONCE = 256
_KINDS = {"query": pb.EMBED_KIND_QUERY, "passage": pb.EMBED_KIND_PASSAGE}


@router.post(
    "/embeddings",
    dependencies=[NEEDS_QUERY],
    responses={200: {"description": "A vector for each text, L2-normalised."}, **problems(404, 413, 415, 504)},
)
async def create_embeddings(request: EmbeddingsRequest, services: Services) -> JSONResponse:
    """Embeds texts. A text that is longer than the model's window is cut; `usage` says how many tokens were read."""
    timeout_s = services.settings.search_timeout_s
    texts = request.texts
    info = await services.reranker.GetModelInfo(pb.GetModelInfoRequest(), timeout=services.settings.rpc_timeout_s)
    model = _model(request.model, info)
    if request.dimensions not in (None, model.dimension):
        raise UnsupportedParameter(
            f"vectors of {model.name} have {model.dimension} dimensions and are not cut; leave `dimensions` out",
            field="dimensions",
        )
    rows: list[bytes] = []
    tokens = 0
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        batch = pb.EmbedRequest(
            texts=texts[start : start + _TEXTS_AT_ONCE], kind=_KINDS[request.input_type], model=model.name
        )
        answer = await services.reranker.Embed(batch, timeout=timeout_s)
        width = answer.dimension * 4
        rows += [answer.vectors[at : at + width] for at in range(0, len(answer.vectors), width)]
        tokens += sum(answer.token_counts)
    data = [
        {"object": "embedding", "index": index, "embedding": _written(row, request.encoding_format)}
        for index, row in enumerate(rows)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return reply({"object": "list", "data": data, "model": model.name, "usage": usage}, request)


def _model(name: str, info: pb.GetModelInfoResponse) -> pb.EmbeddingModel:
    """Raises ModelNotOffered."""
    if name == EMBEDDING:
        name = info.embedding_model
    for each in info.embedding_models:
        if each.name == name:
            return each
    offered = ", ".join([EMBEDDING, *(each.name for each in info.embedding_models)])
    raise ModelNotOffered(f"there is no embedding model {name[:80]!r}; use one of {offered}", field="model")


def _written(row: bytes, form: str) -> str | list[float]:
    """A vector, float32 little-endian, as the client wants it."""
    return base64.b64encode(row).decode() if form == "base64" else array("f", row).tolist()
