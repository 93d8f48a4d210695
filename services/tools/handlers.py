"""The gRPC edge of the tools service: decode, call, encode."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from groundwork.tools.v1 import tools_pb2 as pb
from groundwork.tools.v1 import tools_pb2_grpc
from pydantic import SecretStr

from kit.access.principal import current_principal
from kit.errors import InvalidArgument
from services.tools.adapters.wire import decode_answers, decode_arguments, encode_outcome, encode_server, encode_tool
from services.tools.calling.execution import Toolbox
from services.tools.calling.progress import Progress
from services.tools.connections.desk import ConnectionDesk
from services.tools.connections.records import Connection
from services.tools.errors import ToolError
from services.tools.models import Call, Caller
from services.tools.server_admin import ServerAdmin
from services.tools.server_logins import ServerLogins
from services.tools.sources.logins import AskedLogin

_CALLER_CHARACTERS_MAX = 200


class ToolsServicer(tools_pb2_grpc.ToolsServiceServicer):
    """The toolbox."""

    def __init__(self, toolbox: Toolbox, servers: ServerAdmin, logins: ServerLogins, desk: ConnectionDesk) -> None:
        self._toolbox = toolbox
        self._servers = servers
        self._logins = logins
        self._desk = desk

    async def ListTools(self, request: pb.ListToolsRequest, context: Any) -> pb.ListToolsResponse:
        caller = current_principal()
        offered = await self._toolbox.offered(Caller(caller.tenant_id, caller.subject, caller.scopes))
        return pb.ListToolsResponse(tools=[encode_tool(tool) for tool in offered])

    async def CallTool(self, request: pb.CallToolRequest, context: Any) -> AsyncIterator[pb.CallToolResponse]:
        try:
            call = _decode_call(request)
        except ToolError as error:
            yield pb.CallToolResponse(result=pb.ToolResult(error_reason=error.reason, error_message=str(error)))
            return
        await self._toolbox.check_room(call)
        progress = Progress()
        calling = asyncio.create_task(self._toolbox.call(call, progress.tell))
        calling.add_done_callback(lambda _: progress.end())
        try:
            while (message := await progress.next()) is not None:
                yield pb.CallToolResponse(progress=pb.ToolProgress(message=message))
            yield pb.CallToolResponse(result=encode_outcome(await calling))
        finally:
            # Who hung up stops the work; a call with an effect goes on without this task.
            calling.cancel()
            await asyncio.wait([calling])

    async def ForgetCalls(self, request: pb.ForgetCallsRequest, context: Any) -> pb.ForgetCallsResponse:
        if not 0 < len(request.caller) <= _CALLER_CHARACTERS_MAX or "/" in request.caller:
            raise InvalidArgument(
                f"caller must be what call ids begin with, up to the first slash, of 1 to {_CALLER_CHARACTERS_MAX} characters"
            )
        await self._toolbox.forget(current_principal().tenant_id, request.caller)
        return pb.ForgetCallsResponse()

    async def ListServers(self, request: pb.ListServersRequest, context: Any) -> pb.ListServersResponse:
        found = await self._servers.servers(current_principal())
        return pb.ListServersResponse(servers=[encode_server(each) for each in found])

    async def SetServer(self, request: pb.SetServerRequest, context: Any) -> pb.SetServerResponse:
        headers = dict(request.headers.values) if request.HasField("headers") else None
        server = await self._servers.put(current_principal(), request.name, request.url, headers)
        return pb.SetServerResponse(server=encode_server(server))

    async def DeleteServer(self, request: pb.DeleteServerRequest, context: Any) -> pb.DeleteServerResponse:
        await self._servers.delete(current_principal(), request.name)
        return pb.DeleteServerResponse()

    async def ApproveTool(self, request: pb.ApproveToolRequest, context: Any) -> pb.ApproveToolResponse:
        server = await self._servers.approve(
            current_principal(), request.name, request.tool, request.digest, reads_only=request.reads_only
        )
        return pb.ApproveToolResponse(server=encode_server(server))

    async def BeginLogin(self, request: pb.BeginLoginRequest, context: Any) -> pb.BeginLoginResponse:
        secret = SecretStr(request.client_secret) if request.client_secret else None
        asked = AskedLogin(request.redirect_uri, request.client_id, secret, request.scope)
        address, until = await self._logins.begin(current_principal(), request.name, asked)
        expires_at = Timestamp()
        expires_at.FromDatetime(until)
        return pb.BeginLoginResponse(authorization_url=address, expires_at=expires_at)

    async def FinishLogin(self, request: pb.FinishLoginRequest, context: Any) -> pb.FinishLoginResponse:
        server = await self._logins.finish(
            current_principal(), request.name, request.state, request.code, request.issuer
        )
        return pb.FinishLoginResponse(server=encode_server(server))

    async def EndLogin(self, request: pb.EndLoginRequest, context: Any) -> pb.EndLoginResponse:
        await self._logins.end(current_principal(), request.name)
        return pb.EndLoginResponse()

    async def ListConnections(self, request: pb.ListConnectionsRequest, context: Any) -> pb.ListConnectionsResponse:
        caller = current_principal()
        found = self._desk.connections.of(caller.tenant_id, caller.subject)
        return pb.ListConnectionsResponse(
            connections=[self._encoded(each) for each in found],
            services=self._desk.services,
            logins=self._desk.logins,
        )

    async def SetConnection(self, request: pb.SetConnectionRequest, context: Any) -> pb.SetConnectionResponse:
        made = await self._desk.connect(
            current_principal(), request.service, request.secret, shared=request.shared, account=request.account
        )
        return pb.SetConnectionResponse(connection=self._encoded(made))

    async def BeginConnectionLogin(
        self, request: pb.BeginConnectionLoginRequest, context: Any
    ) -> pb.BeginConnectionLoginResponse:
        begun, login = await self._desk.begin_login(
            current_principal(), request.service, request.account, shared=request.shared
        )
        expires_at = Timestamp()
        expires_at.FromDatetime(self._desk.ends_at(begun))
        return pb.BeginConnectionLoginResponse(
            user_code=begun.user_code, verification_url=begun.url, expires_at=expires_at, login=login
        )

    async def FinishConnectionLogin(
        self, request: pb.FinishConnectionLoginRequest, context: Any
    ) -> pb.FinishConnectionLoginResponse:
        made, login, trouble = await self._desk.finish_login(current_principal(), request.service, request.login)
        connection = self._encoded(made) if made else None
        return pb.FinishConnectionLoginResponse(connection=connection, login=login, trouble=trouble)

    async def DeleteConnection(self, request: pb.DeleteConnectionRequest, context: Any) -> pb.DeleteConnectionResponse:
        await self._desk.forget(current_principal(), request.service, shared=request.shared)
        return pb.DeleteConnectionResponse()

    def _encoded(self, connection: Connection) -> pb.Connection:
        connections = self._desk.connections
        encoded = pb.Connection(
            service=connection.service,
            shared=connection.is_shared,
            account=connection.account,
            address=connection.address,
            error=connections.problem(connection) or connections.refusal(current_principal().tenant_id, connection),
        )
        encoded.connected_at.FromDatetime(connection.connected_at)
        return encoded


def _decode_call(request: pb.CallToolRequest) -> Call:
    caller = current_principal()
    return Call(
        caller.tenant_id,
        request.name,
        decode_arguments(request.arguments),
        request.call_id,
        tuple(request.allowed_tools),
        tuple(request.collection_ids),
        caller.subject,
        caller.scopes,
        decode_answers(request),
    )
