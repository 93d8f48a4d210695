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

    def add(self, prompt_tokens: int, completion_tokens: int, cost_usd: float, model: str) -> None:
        """One use of a model."""
        taken = self._taken
        self._taken = replace(
            taken,
            prompt_tokens=taken.prompt_tokens + prompt_tokens,
            completion_tokens=taken.completion_tokens + completion_tokens,
            cost_usd=taken.cost_usd + cost_usd,
            model=model or taken.model,
        )

    def usage(self) -> StepUsage | None:
        """What was taken so far; None when it is not counted."""
        if not self._counted:
            return None
        seconds = self._taken.seconds + (self._clock() - self._began_at if self._began_at is not None else 0.0)
        return replace(self._taken, seconds=round(seconds, 4))

    def stop(self) -> None:
        """The step has ended, or was broken off."""
        self._taken = self.usage() or self._taken
        self._began_at = None
