"""Agents and modes that answer questions."""

from fastapi import APIRouter
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from services.gateway.access.scopes import NEEDS_QUERY
from services.gateway.backends import Services
from services.gateway.encoding import encode
from services.gateway.schemas.agents import AgentList
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1/agents", tags=["agents"], dependencies=[NEEDS_QUERY])


@router.get("", responses=problems())
async def list_agents(services: Services) -> AgentList:
    """The agents that a question may name, and the modes that serve questions."""
    answer = await services.orchestrator.ListAgents(pb.ListAgentsRequest(), timeout=services.settings.rpc_timeout_s)
    return AgentList.model_validate(encode(answer))
