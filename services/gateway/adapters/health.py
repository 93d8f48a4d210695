"""Health of a service, by the gRPC health checking protocol (grpc.health.v1)."""

import grpc
from grpc_health.v1 import health_pb2

from kit.access.principal import use_principal
from kit.errors import GroundworkError
from kit.rpc.calls import HealthStub
from kit.rpc.server import HEALTH_DETAIL_KEY, HEALTH_KINDS_KEY
from services.gateway.access.auth import PROBE
from services.gateway.models import Health, HealthState


class GrpcHealthProbe:
    """HealthProbe over a health stub."""

    def __init__(self, stub: HealthStub, *, timeout_s: float) -> None:
        self._stub = stub
        self._timeout_s = timeout_s

    async def check(self) -> Health:
        request = health_pb2.HealthCheckRequest()
        try:
            with use_principal(PROBE):
                call = self._stub.Check(request, timeout=self._timeout_s, wait_for_ready=False)
                answer, trailing = await call, await call.trailing_metadata()
        except GroundworkError as error:
            return Health(HealthState.UNREACHABLE, error.reason)
        if answer.status == health_pb2.HealthCheckResponse.SERVING:
            return Health(HealthState.SERVING, _detail(trailing), _kinds(trailing))
        detail = _detail(trailing) or "it waits for its own dependencies, or is draining"
        return Health(HealthState.NOT_SERVING, detail, _kinds(trailing))


def _detail(trailing: grpc.aio.Metadata) -> str:
    """What the service says of itself; an older one says nothing."""
    detail = trailing.get(HEALTH_DETAIL_KEY, b"")
    return detail if isinstance(detail, str) else detail.decode(errors="replace")


def _kinds(trailing: grpc.aio.Metadata) -> tuple[str, ...]:
    """The kinds of what is wrong; an older service names none."""
    kinds = str(trailing.get(HEALTH_KINDS_KEY, ""))
    return tuple(kinds.split(",")) if kinds else ()
