"""Language models: what each operation asks, and changing that while everything runs."""

import asyncio

from fastapi import APIRouter
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from services.gateway.access.scopes import NEEDS_OPERATOR, NEEDS_QUERY
from services.gateway.backends import Backends, Services
from services.gateway.encoding import encode
from services.gateway.openai.asking import model_names
from services.gateway.openai.embeddings import EMBEDDING
from services.gateway.schemas.administration.models import (
    ModelChoice,
    Models,
    OfferedModel,
    OperationModels,
    OperationPath,
)
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1/models", tags=["models"])


@router.get("", dependencies=[NEEDS_QUERY], responses=problems())
async def get_models(services: Services) -> Models:
    """What each operation asks, and what there is; and in `data`, for clients of OpenAI's API, the models that they may name."""
    timeout_s = services.settings.rpc_timeout_s
    answer, agents = await asyncio.gather(
        services.orchestrator.GetModels(pb.GetModelsRequest(), timeout=timeout_s),
        services.orchestrator.ListAgents(pb.ListAgentsRequest(), timeout=timeout_s),
    )
    names = [*model_names([each.name for each in agents.agents]), EMBEDDING]
    offered = [OfferedModel(id=name) for name in names]
    return Models.model_validate({**encode(answer), "data": offered})


@router.put("/{operation}", dependencies=[NEEDS_OPERATOR], responses=problems(412, 413, 415))
async def set_model(operation: OperationPath, choice: ModelChoice, services: Services) -> OperationModels:
    """Has an operation ask another model, on all replicas and after a restart; the configured ones stand in for it. The model must
    answer now, unless `force` is set. Runs that go on keep the model of the step that they are in."""
    name = pb.ModelName(provider=choice.provider, model=choice.model)
    return await _set(pb.SetModelRequest(operation=operation, model=name, force=choice.force), services)


@router.delete("/{operation}", dependencies=[NEEDS_OPERATOR], responses=problems())
async def reset_model(operation: OperationPath, services: Services) -> OperationModels:
    """Has an operation ask the configured models again. Harmless when repeated."""
    return await _set(pb.SetModelRequest(operation=operation), services)


async def _set(request: pb.SetModelRequest, services: Backends) -> OperationModels:
    answer = await services.orchestrator.SetModel(request, timeout=services.settings.rpc_timeout_s)
    return OperationModels.model_validate(encode(answer.operation))
