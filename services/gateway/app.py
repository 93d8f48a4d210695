"""The gateway's composition root."""

import socket
import time
from contextlib import closing
from datetime import UTC, datetime

import structlog

from kit.network.hosts import is_loopback_address
from kit.process.service import Service
from kit.stores.message_store import lasting
from services.gateway.access.guests.sweeping import Sweeper
from services.gateway.access.keys import Keys
from services.gateway.api import create_api
from services.gateway.backends import open_backends
from services.gateway.errors import AuthenticationRequired
from services.gateway.serving.connection_table import connection_limits
from services.gateway.serving.server import HttpServer, bind, inherited
from services.gateway.settings import GatewaySettings

_log = structlog.get_logger()


async def run(settings: GatewaySettings) -> None:
    """Serves HTTP until a signal stops it. Starts whether or not the services behind it do: /readyz says how they are."""
    descriptor = settings.listen_fd
    with closing(bind(settings.host, settings.port) if descriptor is None else inherited(descriptor)) as door:
        if settings.auth == "none":
            require_loopback(door)
        await _serve(settings, door)


def require_loopback(door: socket.socket) -> None:
    """Raises AuthenticationRequired unless only this machine can reach the socket, which may have been bound by somebody else."""
    address = door.getsockname()[0]
    if not is_loopback_address(address):
        raise AuthenticationRequired(
            f"the HTTP API would listen on {address}, where others than this machine reach it, and ask nobody who they are. Set "
            "GROUNDWORK_AUTH=api_keys and make a first key with `groundwork keys bootstrap`, or listen on loopback only: "
            "GROUNDWORK_HOST=127.0.0.1"
        )


async def _serve(settings: GatewaySettings, door: socket.socket) -> None:
    async with Service("gateway", settings) as service:
        backends = await open_backends(service.stack, settings, service.stopping, service.closing)
        limits = connection_limits(settings)
        keys = _keys(settings)
        if keys is not None:
            service.spawn(lasting("API keys", keys.run))
            service.report(keys.ring.troubles)
            sweeper = Sweeper(keys.guest_door, backends, lambda: datetime.now(UTC).timestamp())
            service.spawn(lasting("guests", sweeper.run))
        api = create_api(backends, keys)
        await service.stack.enter_async_context(api.state.mcp.running())
        server = HttpServer(
            api,
            door,
            limits,
            grace_s=settings.drain_grace_s,
            shares_door=settings.listen_fd is not None,
            max_message_bytes=settings.max_json_bytes,
        )
        serving = service.spawn(server.serve(service.stopping, service.closing))
        _log.info(
            "http_started",
            host=server.host,
            port=server.port,
            auth=settings.auth,
            max_connections=limits.max_connections,
        )
        await service.serve()
        await serving


def _keys(settings: GatewaySettings) -> Keys | None:
    """None where nobody is asked for one: such a gateway needs no message store."""
    if settings.auth == "none":
        return None
    return Keys(settings, now=lambda: datetime.now(UTC), clock=time.monotonic)
