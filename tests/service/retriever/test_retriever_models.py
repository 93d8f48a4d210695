"""A collection's embedding model changed over gRPC, with real engines and a real message store."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from groundwork.reranker.v1 import reranker_pb2
from groundwork.retriever.v1 import retriever_pb2 as pb

from kit.errors import FailedPrecondition, GroundworkError
from kit.testing.harness import running_service
from services.retriever.app import run
from services.retriever.settings import RetrieverSettings
from tests.service.retriever.conftest import FakeModelServer, Retriever, retriever_as
from tests.unit.retriever.fakes import DIMENSION, MODEL, embed

OTHER, OTHER_DIMENSION = "other-model", 16
PATIENCE_S = 60.0


class TwoModels(FakeModelServer):
    """Embeds with either."""

    async def Embed(
        self, request: reranker_pb2.EmbedRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> reranker_pb2.EmbedResponse:
        self._observe(context)
        dimension = OTHER_DIMENSION if request.model == OTHER else DIMENSION
        vectors = embed(request.texts, dimension).astype("<f4").tobytes()
        return reranker_pb2.EmbedResponse(vectors=vectors, dimension=dimension, model=request.model or MODEL)

    async def GetModelInfo(
        self, request: reranker_pb2.GetModelInfoRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> reranker_pb2.GetModelInfoResponse:
        models = [reranker_pb2.EmbeddingModel(name=name) for name in (MODEL, OTHER)]
        return reranker_pb2.GetModelInfoResponse(embedding_model=MODEL, embedding_models=models)


@pytest.fixture
async def models() -> FakeModelServer:
    return TwoModels()


async def model_of(retriever: Retriever) -> pb.CollectionModel:
    request = pb.GetCollectionModelRequest(collection_id="default")
    return (await retriever.stub.GetCollectionModel(request, timeout=60)).model


async def until(retriever: Retriever, stage: pb.ModelStage.ValueType) -> pb.CollectionModel:
    async with asyncio.timeout(PATIENCE_S):
        while (model := await model_of(retriever)).stage != stage:
            await asyncio.sleep(0.05)
    return model


async def change(retriever: Retriever, model: str = OTHER) -> pb.CollectionModel:
    request = pb.ChangeCollectionModelRequest(collection_id="default", model=model)
    return (await retriever.stub.ChangeCollectionModel(request, timeout=60)).model


async def test_change_swap_rollback_and_drop(local: Retriever) -> None:
    for n in range(3):
        text = f"The solar panel of house number {n} stands on its own southern roof."
        await local.publish(f"r{n}", [text], document_id=f"d{n}")
    before = await model_of(local)
    assert (before.model, before.is_chosen, list(before.available_models)) == (MODEL, False, [MODEL, OTHER])
    assert (await change(local)).other_model == OTHER
    ready = await until(local, pb.MODEL_STAGE_READY)
    assert (ready.whole.chunk_count, ready.in_other_model.chunk_count) == (3, 3)
    assert ready.evaluation.question_count == 3
    assert ready.evaluation.vectors.after.ndcg_at_10 > 0
    with pytest.raises(FailedPrecondition) as refused:
        await change(local)
    assert refused.value.reason == "EMBEDDING_CHANGE_UNDER_WAY"
    swap = pb.SwapCollectionModelRequest(collection_id="default", force=True)
    swapped = (await local.stub.SwapCollectionModel(swap, timeout=60)).model
    assert (swapped.model, swapped.other_model, set(swapped.searched)) == (OTHER, MODEL, {OTHER})
    assert len(await local.texts("solar panel")) == 3
    back = pb.RollBackCollectionModelRequest(collection_id="default")
    assert (await local.stub.RollBackCollectionModel(back, timeout=60)).model.model == MODEL
    evaluate = pb.EvaluateCollectionModelRequest(
        collection_id="default", questions=[pb.ModelQuestion(text="house number 1", document_ids=["d1"])], margin=0.5
    )
    await local.stub.EvaluateCollectionModel(evaluate, timeout=60)
    again = await until(local, pb.MODEL_STAGE_READY)
    assert (again.evaluation.question_count, again.evaluation.is_made, again.margin) == (1, False, 0.5)
    await local.stub.DropCollectionModel(pb.DropCollectionModelRequest(collection_id="default"), timeout=60)
    settled = await until(local, pb.MODEL_STAGE_SETTLED)
    assert (settled.model, settled.other_model, settled.is_chosen) == (MODEL, "", True)
    assert len(await local.texts("solar panel")) == 3


async def test_errors_name_what_is_wrong(local: Retriever) -> None:
    await local.publish("r1", ["solar panel"])
    with pytest.raises(FailedPrecondition) as unknown:
        await change(local, "nothing-like-it")
    assert unknown.value.reason == "EMBEDDING_MODEL_UNKNOWN"
    assert OTHER in unknown.value.message
    with pytest.raises(FailedPrecondition) as unchanged:
        await change(local, MODEL)
    assert unchanged.value.reason == "EMBEDDING_UNCHANGED"
    nowhere = pb.ChangeCollectionModelRequest(collection_id="nowhere", model=OTHER)
    with pytest.raises(GroundworkError) as nothing:
        await local.stub.ChangeCollectionModel(nowhere, timeout=60)
    assert nothing.value.reason == "COLLECTION_NOT_FOUND"
    with pytest.raises(GroundworkError) as missing:
        await local.stub.GetCollectionModel(pb.GetCollectionModelRequest(collection_id="No Such"), timeout=60)
    assert missing.value.reason == "INVALID_REQUEST"


async def test_change_goes_on_after_the_retriever_was_replaced(
    settings: RetrieverSettings, models_address: str
) -> None:
    async with running_service(run, settings) as address, retriever_as(address, "local") as retriever:
        await retriever.publish("r1", ["The solar panel of this house stands on its own southern roof."])
        await change(retriever)
    async with running_service(run, settings) as address, retriever_as(address, "local") as retriever:
        ready = await until(retriever, pb.MODEL_STAGE_READY)
        assert ready.in_other_model.chunk_count == 1


async def test_collection_of_somebody_else_is_not_there(address: str, local: Retriever) -> None:
    await local.publish("r1", ["solar panel"])
    async with retriever_as(address, "rival") as rival:
        model = await model_of(rival)
        assert model.whole.chunk_count == 0, "their own default collection"
