"""The gateway's composition root."""

import socket
from contextlib import closing

import structlog

from kit.hosts import is_loopback_name
from kit.service import Service
from services.gateway.api import create_api
from services.gateway.backends import open_backends
from services.gateway.lobby import connection_limits
from services.gateway.server import HttpServer, bind, inherited
from services.gateway.settings import GatewaySettings

_log = structlog.get_logger()


async def run(settings: GatewaySettings) -> None:
    """Serves HTTP until told to stop. Starts whether or not the services behind it do: /readyz says how they are."""
    descriptor = settings.listen_fd
    with closing(bind(settings.host, settings.port) if descriptor is None else inherited(descriptor)) as door:
        await _serve(settings, door)


async def _serve(settings: GatewaySettings, door: socket.socket) -> None:
    async with Service("gateway", settings) as service:
        backends = await open_backends(service.stack, settings, service.stopping, service.closing)
        limits = connection_limits(settings)
        server = HttpServer(
            create_api(backends),
            door,
            limits,
            grace_s=settings.drain_grace_s,
            shares_door=settings.listen_fd is not None,
        )
        if not is_loopback_name(server.host):
            _log.warning(
                "http_exposed", host=server.host, detail="anyone who reaches this port may read and change all"
            )
        serving = service.spawn(server.serve(service.stopping, service.closing))
        _log.info("http_started", host=server.host, port=server.port, max_connections=limits.max_connections)
        await service.serve()
        await serving
