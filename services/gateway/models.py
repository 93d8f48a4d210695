"""The gateway's own domain: events on their way to a client, and what a service's health check said."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import SecretStr

Json = dict[str, Any]
"""A JSON object."""


@dataclass(frozen=True)
class RunEvent:
    """One entry of a run's log, ready to be sent."""

    run_id: str
    seq: int
    kind: str
    """Name of the payload in the contract's RunEvent."""
    data: Json
    """run_id, seq, at and the payload's fields."""

    @property
    def is_last(self) -> bool:
        return self.kind == "done"


@dataclass(frozen=True)
class Budgets:
    """Limits that a question asks for; zero means the service's setting."""

    wall_clock_s: float = 0.0
    answer_tokens: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    reasoning_steps: int = 0
    tool_calls: int = 0
    parallel_calls: int = 0


@dataclass(frozen=True)
class BroughtModel:
    """A model that a user brings with a question."""

    base_url: str
    api_key: SecretStr
    model: str
    preset: str


@dataclass(frozen=True)
class RunRequest:
    """A question to be answered."""

    mode: str
    """Name of a mode of the orchestrator."""
    question: str
    collection_ids: tuple[str, ...]
    thread_id: str = ""
    agent: str = ""
    document_ids: tuple[str, ...] = ()
    top_k: int = 0
    idempotency_key: str = ""
    budgets: Budgets = Budgets()
    brought_model: BroughtModel | None = None
    tools: tuple[str, ...] | None = None
    """Tools that the run may use; None means all that the tenant may."""
    memory: str = ""


class HealthState(StrEnum):
    """What a service's health check said."""

    SERVING = "serving"
    NOT_SERVING = "not_serving"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class Health:
    """State of one service."""

    state: HealthState
    detail: str = ""
