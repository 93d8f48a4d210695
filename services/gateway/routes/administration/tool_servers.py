"""MCP servers whose tools agents may use: which there are, and which of their tools are approved."""

from fastapi import APIRouter, Request
from groundwork.tools.v1 import tools_pb2 as pb

from services.gateway.access.scopes import NEEDS_ADMIN
from services.gateway.backends import Services
from services.gateway.encoding import encode
from services.gateway.routes.console import CALLBACK_PATH
from services.gateway.schemas.administration.tool_servers import (
    BegunLogin,
    NewToolServer,
    NewToolServerLogin,
    ToolApproval,
    ToolServer,
    ToolServerList,
    ToolServerLoginAnswer,
)
from services.gateway.schemas.fields import ServerToolPath, ToolServerPath
from services.gateway.schemas.problem import problems
from services.gateway.serving.requests import base_url

router = APIRouter(prefix="/v1/tool-servers", tags=["tools"], dependencies=[NEEDS_ADMIN])
_TIMEOUT_S = 30.0
"""A server is asked for its tools, which may take it 20 s."""


@router.get("", responses=problems(504))
async def list_tool_servers(services: Services) -> ToolServerList:
    """The MCP servers of the operator and of your tenant, with what each tool says of itself, and whether it is approved."""
    answer = await services.tools.ListServers(pb.ListServersRequest(), timeout=_TIMEOUT_S)
    return ToolServerList.model_validate(encode(answer))


@router.put("/{server}", responses=problems(412, 413, 415, 504))
async def set_tool_server(server: ToolServerPath, new: NewToolServer, services: Services) -> ToolServer:
    """Adds an MCP server for your tenant, or gives it another address, which ends its approvals and takes its headers
    away. Its tools are offered once they are approved. Harmless when repeated."""
    request = pb.SetServerRequest(name=server, url=new.url, headers=new.secret_headers())
    answer = await services.tools.SetServer(request, timeout=_TIMEOUT_S)
    return ToolServer.model_validate(encode(answer.server))


@router.delete("/{server}", status_code=204, responses=problems(412))
async def delete_tool_server(server: ToolServerPath, services: Services) -> None:
    """Removes an MCP server of your tenant with its approvals. Harmless when repeated."""
    await services.tools.DeleteServer(pb.DeleteServerRequest(name=server), timeout=_TIMEOUT_S)


@router.post("/{server}/login", responses=problems(404, 412, 413, 415, 504))
async def begin_tool_server_login(
    server: ToolServerPath, login: NewToolServerLogin, request: Request, services: Services
) -> BegunLogin:
    """Begins a login at an MCP server of your tenant that wants one (OAuth): open `authorization_url` in a browser. At the end the
    browser comes to a page of this gateway, which finishes the login with your key, or to an address of your own program."""
    callback = f"{base_url(request.scope, services.settings.public_url)}{CALLBACK_PATH}"
    asked = pb.BeginLoginRequest(
        name=server,
        redirect_uri=login.redirect_uri or callback,
        client_id=login.client_id,
        client_secret=login.client_secret.get_secret_value(),
        scope=login.scope,
    )
    return BegunLogin.model_validate(encode(await services.tools.BeginLogin(asked, timeout=_TIMEOUT_S)))


@router.post("/{server}/login/answer", responses=problems(404, 412, 413, 415, 504))
async def finish_tool_server_login(
    server: ToolServerPath, answer: ToolServerLoginAnswer, services: Services
) -> ToolServer:
    """Finishes the login that you have begun, with what the address holds to which the browser was sent."""
    given = pb.FinishLoginRequest(
        name=server, state=answer.state, code=answer.code.get_secret_value(), issuer=answer.iss or ""
    )
    return ToolServer.model_validate(encode((await services.tools.FinishLogin(given, timeout=_TIMEOUT_S)).server))


@router.delete("/{server}/login", status_code=204, responses=problems(404, 412))
async def end_tool_server_login(server: ToolServerPath, services: Services) -> None:
    """Forgets the login at an MCP server of your tenant. Harmless when repeated."""
    await services.tools.EndLogin(pb.EndLoginRequest(name=server), timeout=_TIMEOUT_S)


@router.put("/{server}/tools/{tool}", responses=problems(404, 412, 413, 415, 504))
async def approve_tool(
    server: ToolServerPath, tool: ServerToolPath, approval: ToolApproval, services: Services
) -> ToolServer:
    """Lets your tenant's agents use a tool as it describes itself now. When it says something else by then: 412 with
    `TOOL_CHANGED`."""
    request = pb.ApproveToolRequest(name=server, tool=tool, digest=approval.digest, reads_only=approval.reads_only)
    answer = await services.tools.ApproveTool(request, timeout=_TIMEOUT_S)
    return ToolServer.model_validate(encode(answer.server))


@router.delete("/{server}/tools/{tool}", responses=problems(404, 504))
async def withdraw_tool(server: ToolServerPath, tool: ServerToolPath, services: Services) -> ToolServer:
    """Takes the approval of a tool back. One that the operator has approved stays."""
    answer = await services.tools.ApproveTool(pb.ApproveToolRequest(name=server, tool=tool), timeout=_TIMEOUT_S)
    return ToolServer.model_validate(encode(answer.server))
