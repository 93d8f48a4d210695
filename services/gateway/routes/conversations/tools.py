"""Tools that runs may use."""

from fastapi import APIRouter
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb

from services.gateway.access.scopes import NEEDS_QUERY
from services.gateway.backends import Services
from services.gateway.encoding import encode
from services.gateway.schemas.conversations.tools import ToolList
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1/tools", tags=["tools"], dependencies=[NEEDS_QUERY])


@router.get("", responses=problems())
async def list_tools(services: Services) -> ToolList:
    """The tools that your runs may use, with the shape of their arguments and what a call does to the world."""
    answer = await services.orchestrator.ListTools(pb.ListToolsRequest(), timeout=services.settings.rpc_timeout_s)
    return ToolList.model_validate(encode(answer))
