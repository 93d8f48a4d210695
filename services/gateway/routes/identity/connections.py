"""Connections to other services, which tools use in the caller's name."""

from fastapi import APIRouter
from groundwork.tools.v1 import tools_pb2 as pb

from services.gateway.access.scopes import NEEDS_QUERY
from services.gateway.backends import Services
from services.gateway.encoding import encode
from services.gateway.schemas.identity.connections import (
    ConnectionLogin,
    ConnectionProgress,
    IsShared,
    NewConnectionLogin,
    NewToolConnection,
    ServicePath,
    ToolConnection,
    ToolConnectionList,
    WaitingConnectionLogin,
)
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1/connections", tags=["connections"], dependencies=[NEEDS_QUERY])
_TIMEOUT_S = 20.0
"""The service is asked whether it takes the credential."""
_LOGIN_TIMEOUT_S = 45.0
"""A person is waited for, then the service is asked as above."""


@router.get("", responses=problems())
async def list_connections(services: Services) -> ToolConnectionList:
    """Your connections and those of your tenant, and which services can be connected here."""
    answer = await services.tools.ListConnections(pb.ListConnectionsRequest(), timeout=_TIMEOUT_S)
    return ToolConnectionList.model_validate(encode(answer))


@router.put("/{service}", responses=problems(412, 413, 415, 504))
async def set_connection(service: ServicePath, new: NewToolConnection, services: Services) -> ToolConnection:
    """Connects a service for you, or for everybody in your tenant: its tools are offered from then on. The credential is tried
    first: 412 with `CONNECTION_REFUSED` when the service does not take it. Harmless when repeated."""
    secret = new.secret.get_secret_value()
    request = pb.SetConnectionRequest(service=service, secret=secret, shared=new.shared, account=new.account)
    answer = await services.tools.SetConnection(request, timeout=_TIMEOUT_S)
    return ToolConnection.model_validate(encode(answer.connection))


@router.post("/{service}/login", responses=problems(412, 413, 415, 504))
async def begin_connection_login(service: ServicePath, new: NewConnectionLogin, services: Services) -> ConnectionLogin:
    """Begins to connect a service by a login there: open the address, type the code, and allow it. Services that can be are listed
    in `logins`."""
    request = pb.BeginConnectionLoginRequest(service=service, shared=new.shared, account=new.account)
    answer = await services.tools.BeginConnectionLogin(request, timeout=_TIMEOUT_S)
    return ConnectionLogin.model_validate(encode(answer))


@router.post("/{service}/login/finish", responses=problems(412, 413, 415, 504))
async def finish_connection_login(
    service: ServicePath, waiting: WaitingConnectionLogin, services: Services
) -> ConnectionProgress:
    """Waits up to 15 seconds until you have agreed at the service, and connects it then. While there is no connection, ask again at
    once with the returned `login`. 412 with `CONNECTION_REFUSED` when you refuse, with `CONNECTION_LOGIN_OVER` when the code has
    ended."""
    request = pb.FinishConnectionLoginRequest(service=service, login=waiting.login)
    answer = await services.tools.FinishConnectionLogin(request, timeout=_LOGIN_TIMEOUT_S)
    connection = encode(answer.connection) if answer.HasField("connection") else None
    return ConnectionProgress.model_validate(
        {"connection": connection, "login": answer.login, "trouble": answer.trouble}
    )


@router.delete("/{service}", status_code=204, responses=problems(412))
async def delete_connection(service: ServicePath, services: Services, shared: IsShared = False) -> None:
    """Forgets a connection and its credential. Harmless when repeated."""
    request = pb.DeleteConnectionRequest(service=service, shared=shared)
    await services.tools.DeleteConnection(request, timeout=_TIMEOUT_S)
