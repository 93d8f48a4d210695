"""Connections to other services, which tools use in the caller's name."""

from fastapi import APIRouter
from groundwork.tools.v1 import tools_pb2 as pb

from services.gateway.access.scopes import NEEDS_QUERY
from services.gateway.backends import Services
from services.gateway.encoding import encode
from services.gateway.schemas.identity.connections import (
    IsShared,
    NewToolConnection,
    ServicePath,
    ToolConnection,
    ToolConnectionList,
)
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1/connections", tags=["connections"], dependencies=[NEEDS_QUERY])
_TIMEOUT_S = 20.0
"""The service is asked whether it takes the credential."""


@router.get("", responses=problems())
async def list_connections(services: Services) -> ToolConnectionList:
    """Your connections and those of your tenant, and which services can be connected here."""
    answer = await services.tools.ListConnections(pb.ListConnectionsRequest(), timeout=_TIMEOUT_S)
    return ToolConnectionList.model_validate(encode(answer))


@router.put("/{service}", responses=problems(412, 413, 415, 504))
async def set_connection(service: ServicePath, new: NewToolConnection, services: Services) -> ToolConnection:
    """Connects a service for you, or for everybody in your tenant: its tools are offered from then on. The credential is tried
    first: 412 with `CONNECTION_REFUSED` when the service does not take it. Harmless when repeated."""
    request = pb.SetConnectionRequest(service=service, secret=new.secret.get_secret_value(), shared=new.shared)
    answer = await services.tools.SetConnection(request, timeout=_TIMEOUT_S)
    return ToolConnection.model_validate(encode(answer.connection))


@router.delete("/{service}", status_code=204, responses=problems(412))
async def delete_connection(service: ServicePath, services: Services, shared: IsShared = False) -> None:
    """Forgets a connection and its credential. Harmless when repeated."""
    request = pb.DeleteConnectionRequest(service=service, shared=shared)
    await services.tools.DeleteConnection(request, timeout=_TIMEOUT_S)
