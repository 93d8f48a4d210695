"""Health of a service, by the gRPC health checking protocol (grpc.health.v1)."""

from typing import Any

from grpc_health.v1 import health_pb2

from kit.errors import GroundworkError
from kit.principal import use_principal
from services.gateway.auth import PROBE
from services.gateway.models import Health, HealthState


class GrpcHealthProbe:
    """HealthProbe over a health stub."""

    def __init__(self, stub: Any, *, timeout_s: float) -> None:
        self._stub = stub
        self._timeout_s = timeout_s

    async def check(self) -> Health:
        try:
            with use_principal(PROBE):
                answer = await self._stub.Check(health_pb2.HealthCheckRequest(), timeout=self._timeout_s)
        except GroundworkError as error:
            return Health(HealthState.UNREACHABLE, error.reason)
        if answer.status == health_pb2.HealthCheckResponse.SERVING:
            return Health(HealthState.SERVING)
        return Health(HealthState.NOT_SERVING, "it waits for its own dependencies, or is draining")
