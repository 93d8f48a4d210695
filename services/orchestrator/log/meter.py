"""What one step takes: time, tokens, dollars. It goes into the log with each event of the step, so that a worker that dies has been
paid for up to its last event."""

from collections.abc import Callable
from dataclasses import replace

from services.orchestrator.log.events import StepUsage


class Meter:
    """Goes on from what earlier attempts at the step had taken. A step that consists of other steps is not `counted`."""

    def __init__(
        self, step: str, earlier: StepUsage | None, clock: Callable[[], float], *, counted: bool = True
    ) -> None:
        self.step = step
        self._counted = counted
        self._taken = earlier or StepUsage(step)
        self._clock = clock
        self._began_at: float | None = clock()
        self._under_way: dict[object, StepUsage] = {}

    def reckon(self, use: object, usage: StepUsage) -> None:
        """What a use of a model that goes on has come to by estimate: known to the process that continues the run, should this one
        be killed."""
        self._under_way[use] = usage

    def settle(self, use: object) -> None:
        """The use is over: what it was in fact is added, and the estimate forgotten."""
        self._under_way.pop(use, None)

    def add(self, usage: StepUsage) -> None:
        """One use of a model."""
        self._taken = _sum(self._taken, usage)

    def usage(self) -> StepUsage | None:
        """What was taken so far; None when it is not counted."""
        if not self._counted:
            return None
        seconds = self._taken.seconds + (self._clock() - self._began_at if self._began_at is not None else 0.0)
        taken = self._taken
        for usage in self._under_way.values():
            taken = _sum(taken, usage)
        return replace(taken, seconds=round(seconds, 4))

    def stop(self) -> None:
        """The step has ended, or was broken off."""
        self._taken = self.usage() or self._taken
        self._began_at = None


def _sum(taken: StepUsage, usage: StepUsage) -> StepUsage:
    return replace(
        taken,
        prompt_tokens=taken.prompt_tokens + usage.prompt_tokens,
        completion_tokens=taken.completion_tokens + usage.completion_tokens,
        cost_usd=taken.cost_usd + usage.cost_usd,
        model=usage.model or taken.model,
    )
