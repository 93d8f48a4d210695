"""What a run may spend and what it has spent. The sums come from the log: a run that is taken over has spent what it had spent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import fields
from typing import TypeVar

from services.orchestrator.errors import BudgetSpent
from services.orchestrator.log.events import Budgets
from services.orchestrator.log.journal import Journal
from services.orchestrator.settings import OrchestratorSettings

_Number = TypeVar("_Number", int, float)


def most_budgets(settings: OrchestratorSettings) -> Budgets:
    """The most that any run gets."""
    return Budgets(
        wall_clock_s=settings.run_wall_clock_s,
        answer_tokens=settings.answer_tokens,
        steps=settings.run_max_steps,
        tool_calls=settings.run_max_tool_calls,
        parallel_calls=settings.run_max_parallel_calls,
        tokens=settings.run_max_tokens,
        cost_usd=settings.run_max_cost_usd,
        reasoning_steps=settings.run_max_reasoning_steps,
    )


def in_force(asked: Budgets, limits: Budgets) -> Budgets:
    """The budgets that a request gets: what it asks for, at most the limit. A zero asks for nothing, or limits nothing."""
    return Budgets(
        wall_clock_s=_smaller(asked.wall_clock_s, limits.wall_clock_s),
        answer_tokens=asked.answer_tokens or limits.answer_tokens,  # bounded by `tokens` and by the model
        steps=_smaller(asked.steps, limits.steps),
        tool_calls=_smaller(asked.tool_calls, limits.tool_calls),
        parallel_calls=_smaller(asked.parallel_calls, limits.parallel_calls),
        tokens=_smaller(asked.tokens, limits.tokens),
        cost_usd=_smaller(asked.cost_usd, limits.cost_usd),
        reasoning_steps=_smaller(asked.reasoning_steps, limits.reasoning_steps),
    )


def usual_for(asked: Budgets, usual: Budgets) -> Budgets:
    """What is asked for, or what is usual where nothing is."""
    return Budgets(**{each.name: getattr(asked, each.name) or getattr(usual, each.name) for each in fields(Budgets)})


def _smaller(asked: _Number, limit: _Number) -> _Number:
    return min(asked, limit) if asked and limit else asked or limit


class Ledger:
    """The books of one run. Steps and calls are entered before they begin; tokens and dollars once a model has used them, so the
    use that goes over the limit is the last."""

    def __init__(self, budgets: Budgets, journal: Journal) -> None:
        self.budgets = budgets
        self._journal = journal
        progress = journal.progress
        self._steps = set(progress.spent)
        self._calls = set(progress.intents)
        self._slots = asyncio.Semaphore(budgets.parallel_calls) if budgets.parallel_calls else None

    @property
    def tokens(self) -> int:
        return sum(usage.tokens for usage in self._journal.spent().values())

    @property
    def cost_usd(self) -> float:
        return sum(usage.cost_usd for usage in self._journal.spent().values())

    @property
    def tokens_left(self) -> int | None:
        """None where nothing limits them."""
        return max(0, self.budgets.tokens - self.tokens) if self.budgets.tokens else None

    def affordable_tokens(self, asked: int) -> int:
        """At most so many as are left, and at least one."""
        left = self.tokens_left
        return asked if left is None else min(asked, max(1, left))

    @property
    def remaining_s(self) -> float | None:
        """Of the time that may be worked; None where nothing limits it."""
        limit_s = self.budgets.wall_clock_s
        if self._journal.progress.is_time_up:
            return 0.0
        return max(0.0, limit_s - self._journal.worked_s) if limit_s else None

    @property
    def steps_left(self) -> int | None:
        """None where nothing limits them."""
        return max(0, self.budgets.steps - len(self._steps)) if self.budgets.steps else None

    @property
    def calls_left(self) -> int | None:
        """None where nothing limits them."""
        return max(0, self.budgets.tool_calls - len(self._calls)) if self.budgets.tool_calls else None

    def has_begun(self, key: str) -> bool:
        """Whether the step has been entered, by this worker or one before it."""
        return key in self._steps

    def enter_step(self, key: str) -> None:
        """Raises BudgetSpent("steps"), or BudgetSpent("wall_clock") when there is no time for it."""
        if key not in self._steps:
            self._require("steps", self.budgets.steps, len(self._steps))
        self.require_time()
        self._steps.add(key)

    def enter_call(self, key: str) -> None:
        """Raises BudgetSpent("tool_calls")."""
        if key not in self._calls:
            self._require("tool_calls", self.budgets.tool_calls, len(self._calls))
        self._calls.add(key)

    def require_time(self) -> None:
        """Raises BudgetSpent("wall_clock")."""
        if self._journal.progress.is_time_up:
            raise BudgetSpent("the time of this run is over; ask with a larger budget", budget="wall_clock")
        if self.budgets.wall_clock_s:
            self._require("wall_clock", self.budgets.wall_clock_s, self._journal.worked_s)

    def require_model(self) -> None:
        """Raises BudgetSpent("tokens" or "cost_usd") when no model may be used any more."""
        self._require("tokens", self.budgets.tokens, self.tokens)
        self._require("cost_usd", self.budgets.cost_usd, self.cost_usd)

    @asynccontextmanager
    async def call_slot(self) -> AsyncIterator[None]:
        """Waits until fewer than `parallel_calls` calls are under way."""
        if self._slots is None:
            yield
            return
        async with self._slots:
            yield

    def _require(self, budget: str, limit: float, spent: float) -> None:
        if limit and spent >= limit:
            raise BudgetSpent(
                f"the run's budget of {budget} is used up: {spent:g} of {limit:g}; ask with a larger budget",
                budget=budget,
            )
