"""How the whole system is: for people, supervisors and load balancers. Needs no key."""

import asyncio
from typing import Literal

from fastapi import APIRouter, Request, Response
from groundwork.store.v1 import store_pb2
from pydantic import BaseModel, Field

from kit.access.principal import OPERATOR, use_principal
from kit.errors import GroundworkError
from services.gateway.access.auth import PROBE, Door, client_address
from services.gateway.access.keys import Keys
from services.gateway.backends import Backends, Services
from services.gateway.models import Health

router = APIRouter(tags=["health"])


class Alive(BaseModel):
    """The gateway's process answers."""

    status: Literal["ok"] = Field(default="ok", description="Always `ok`.")


class ServiceHealth(BaseModel):
    """State of one service."""

    state: Literal["serving", "not_serving", "unreachable"] = Field(description="What its health check said.")
    detail: str | None = Field(default=None, description="What is wrong with it, if anything: also of one that serves.")
    kinds: list[str] = Field(
        default=[],
        description="Kinds of what `detail` names, as constants: `language_model`, or `other`. Empty where nothing is wrong, "
        "and of a service of an earlier version.",
    )


class Damage(BaseModel):
    """Something that is, or was, wrong with the stored data."""

    kind: str = Field(description="What, as a constant, for example `entries_missing`.")
    where: str = Field(description="The bucket or stream.")
    count: int = Field(description="How many entries or files.")
    repaired: int = Field(description="How many of them were put right.")
    detail: str = Field(description="What happened.")
    advice: str = Field(description="What an operator can do; empty when there is nothing to do.")
    found_at: str = Field(description="When it was found, ISO 8601.")


class Readiness(BaseModel):
    """State of the whole system."""

    status: Literal["ready", "damaged", "not_ready"] = Field(
        description="`ready` once every service is serving; `damaged`, with 200 too, when stored data was found damaged, until "
        "`groundwork doctor --accept`: everything serves, and taking it out of service would mend nothing."
    )
    services: dict[str, ServiceHealth] = Field(description="State of each service.")
    damage: list[Damage] = Field(default=[], description="What was found wrong with the stored data, oldest first.")


@router.head("/livez", include_in_schema=False)
@router.get("/livez")
async def livez() -> Alive:
    """Whether this process answers."""
    return Alive(status="ok")


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", responses={503: {"model": Readiness, "description": "Not every service is serving."}})
async def readyz(services: Services, request: Request, response: Response) -> Readiness:
    """Whether every service is serving, and the state of each. Where API keys are asked for, what is wrong with one and with the
    stored data is shown to operators only."""
    details = await _tells_details(request)
    states: dict[str, Health] = {}

    async def ask(name: str) -> None:
        states[name] = await services.probes[name].check()

    async with asyncio.TaskGroup() as group:
        looking = group.create_task(_damage(services))
        for name in services.probes:
            group.create_task(ask(name))
    own = _own(services, request)
    ready = all(state.state == "serving" for state in states.values()) and own.state == "serving"
    response.status_code = 200 if ready else 503
    response.headers["Cache-Control"] = "no-store"
    damage = looking.result()
    return Readiness(
        status="not_ready" if not ready else "damaged" if damage else "ready",
        damage=damage if details else [],
        services={"gateway": own}
        | {
            name: ServiceHealth(
                state=states[name].state.value,
                detail=(details and states[name].detail) or None,
                kinds=list(states[name].kinds) if details else [],
            )
            for name in services.probes
        },
    )


def _own(services: Backends, request: Request) -> ServiceHealth:
    """This gateway's state: it serves nobody while it is stopping or knows no keys."""
    keys: Keys | None = request.app.state.api_keys
    trouble = keys.ring.trouble if keys else ""
    stopping = services.stopping.is_set()
    return ServiceHealth(
        state="not_serving" if stopping or trouble else "serving",
        detail=trouble or None,
        kinds=["other"] if trouble else [],
    )


async def _tells_details(request: Request) -> bool:
    """Whether the caller may know more than the state of each service. A caller without a good key gets that much, and is not
    refused: probes have none."""
    door: Door = request.app.state.door
    keys: Keys | None = request.app.state.api_keys
    if keys is not None and keys.ring.trouble:  # the door would wait for the keys, and health answers at once
        at_once = keys.door.admit_at_once(request.headers)
        return at_once is not None and at_once.principal.may(OPERATOR)
    try:
        admission = await door.admit(request.headers, client_address(request.scope))
    except GroundworkError:
        return False
    return admission.principal.may(OPERATOR)


async def _damage(services: Backends) -> list[Damage]:
    """What is known; nothing when it cannot be asked for, which the state of ingest then says."""
    try:
        with use_principal(PROBE):
            answer = await services.store.GetCondition(
                store_pb2.GetConditionRequest(), timeout=services.settings.health_timeout_s, wait_for_ready=False
            )
    except GroundworkError:
        return []
    return [
        Damage(
            kind=finding.kind,
            where=finding.where,
            count=finding.count,
            repaired=finding.repaired,
            detail=finding.detail,
            advice=finding.advice,
            found_at=finding.found_at,
        )
        for finding in answer.findings
    ]
