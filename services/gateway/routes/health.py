"""How the whole system is: for people, supervisors and load balancers. Needs no key."""

import asyncio
from typing import Literal

from fastapi import APIRouter, Response
from groundwork.store.v1 import store_pb2
from pydantic import BaseModel, Field

from kit.errors import GroundworkError
from kit.principal import use_principal
from services.gateway.auth import PROBE
from services.gateway.backends import Services
from services.gateway.models import Health

router = APIRouter(tags=["health"])


class Alive(BaseModel):
    """The gateway's process answers."""

    status: Literal["ok"] = Field(default="ok", description="Always `ok`.")


class ServiceHealth(BaseModel):
    """State of one service."""

    state: Literal["serving", "not_serving", "unreachable"] = Field(description="What its health check said.")
    detail: str | None = Field(default=None, description="What is wrong with it, if anything: also of one that serves.")


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


@router.get("/livez")
async def livez() -> Alive:
    """Whether this process answers."""
    return Alive(status="ok")


@router.get("/readyz", responses={503: {"model": Readiness, "description": "Not every service is serving."}})
async def readyz(services: Services, response: Response) -> Readiness:
    """Whether every service is serving, and the state of each."""
    states: dict[str, Health] = {}

    async def ask(name: str) -> None:
        states[name] = await services.probes[name].check()

    async with asyncio.TaskGroup() as group:
        looking = group.create_task(_damage(services))
        for name in services.probes:
            group.create_task(ask(name))
    ready = all(state.state == "serving" for state in states.values()) and not services.stopping.is_set()
    response.status_code = 200 if ready else 503
    response.headers["Cache-Control"] = "no-store"
    damage = looking.result()
    return Readiness(
        status="not_ready" if not ready else "damaged" if damage else "ready",
        damage=damage,
        services={"gateway": ServiceHealth(state="not_serving" if services.stopping.is_set() else "serving")}
        | {
            name: ServiceHealth(state=states[name].state.value, detail=states[name].detail or None)
            for name in services.probes
        },
    )


async def _damage(services: Services) -> list[Damage]:
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
