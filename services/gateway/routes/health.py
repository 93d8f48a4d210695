"""How the whole system is: for people, supervisors and load balancers. Needs no key."""

import asyncio
from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

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


class Readiness(BaseModel):
    """State of the whole system."""

    status: Literal["ready", "not_ready"] = Field(description="`ready` once every service is serving.")
    services: dict[str, ServiceHealth] = Field(description="State of each service.")


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
        for name in services.probes:
            group.create_task(ask(name))
    ready = all(state.state == "serving" for state in states.values()) and not services.stopping.is_set()
    response.status_code = 200 if ready else 503
    response.headers["Cache-Control"] = "no-store"
    return Readiness(
        status="ready" if ready else "not_ready",
        services={"gateway": ServiceHealth(state="not_serving" if services.stopping.is_set() else "serving")}
        | {
            name: ServiceHealth(state=states[name].state.value, detail=states[name].detail or None)
            for name in services.probes
        },
    )
