"""Agents and modes that answer questions."""

from fastapi import APIRouter
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from services.gateway.access.scopes import NEEDS_OPERATOR, NEEDS_QUERY
from services.gateway.backends import Services
from services.gateway.encoding import encode
from services.gateway.schemas.conversations.agents import AgentList, AgentSwitch, SwitchedOffAgents
from services.gateway.schemas.fields import AgentPath
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1/agents", tags=["agents"])


@router.get("", dependencies=[NEEDS_QUERY], responses=problems())
async def list_agents(services: Services) -> AgentList:
    """The agents that a question may name, and the modes that serve questions."""
    answer = await services.orchestrator.ListAgents(pb.ListAgentsRequest(), timeout=services.settings.rpc_timeout_s)
    return AgentList.model_validate(encode(answer))


@router.put("/{name}", dependencies=[NEEDS_OPERATOR], responses=problems(413, 415))
async def switch_agent(name: AgentPath, switch: AgentSwitch, services: Services) -> SwitchedOffAgents:
    """Switches the agent `research` off or on, on all replicas and after a restart. While it is off, questions to `/v1/agent` get
    one search and one answer, with a note that says so. Runs that go on end as they began. Harmless when repeated."""
    request = pb.SwitchAgentRequest(name=name, enabled=switch.enabled)
    answer = await services.orchestrator.SwitchAgent(request, timeout=services.settings.rpc_timeout_s)
    return SwitchedOffAgents.model_validate(encode(answer))
