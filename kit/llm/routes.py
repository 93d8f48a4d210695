"""One model as a member of a chain: its endpoint behind the breaker and the limiter of its provider, with our own retries."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from prometheus_client import Counter, Gauge, Histogram

from kit import deadline
from kit.breaker import BreakerState, CircuitBreaker
from kit.llm.brought import BROUGHT
from kit.llm.errors import ModelRejected, ModelUnavailable, PromptTooLong, ToolsRefused
from kit.llm.limiter import Limiter, ProviderBusy
from kit.llm.messages import Delta, Finish, FinishReason, LanguageModel, Request, Restart
from kit.llm.providers import Choice, Provider

_FIRST_BACKOFF_S = 0.2
_LONGEST_BACKOFF_S = 5.0
_CALLS = Counter(
    "groundwork_llm_calls",
    "Requests to language models by how they ended: stop, tool_calls, length, content_filter, incomplete or cut_off as the model "
    "says, or failed, rejected, left_alone (the provider kept failing), abandoned (by us).",
    ["provider", "outcome"],
)
_SECONDS = Histogram(
    "groundwork_llm_seconds",
    "Seconds of a request to a language model, from asking to the end of its answer.",
    ["provider"],
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120),
)
_FIRST_SECONDS = Histogram(
    "groundwork_llm_first_delta_seconds",
    "Seconds until a language model wrote its first word, thought or call.",
    ["provider"],
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60),
)
_BREAKER = Gauge(
    "groundwork_llm_breaker", "Breaker of a provider of language models: 0 closed, 1 half open, 2 open.", ["provider"]
)
_BREAKER_STATES = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}
_CUT_SHORT = {
    FinishReason.INCOMPLETE: ("LLM_INCOMPLETE", "ended its answer without saying why"),
    FinishReason.CUT_OFF: ("LLM_CUT_OFF", "was cut off: it took longer or wrote more than it may"),
}


@dataclass(frozen=True)
class Failure:
    """A request that a provider failed or refused as it stands, not for what was in it."""

    at_s: float
    message: str


class LastFailure:
    """The failure since which no request has succeeded."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.failure: Failure | None = None

    def note(self, error: ModelUnavailable | ModelRejected) -> None:
        """A prompt that is too long, and tools that a model cannot call, say nothing about others."""
        if not isinstance(error, PromptTooLong | ToolsRefused | ProviderBusy):
            self.failure = Failure(self._clock(), error.message)

    def clear(self) -> None:
        self.failure = None


@dataclass(frozen=True)
class ProviderState:
    """What all models of a provider share."""

    name: str
    settings: Provider
    breaker: CircuitBreaker
    limiter: Limiter
    last_failure: LastFailure = field(default_factory=LastFailure)

    @classmethod
    def of(cls, name: str, settings: Provider) -> "ProviderState":
        breaker = CircuitBreaker(
            failures=settings.breaker_failures, window_s=settings.breaker_window_s, open_s=settings.breaker_open_s
        )
        if name != BROUGHT:  # made for each request
            _BREAKER.labels(name).set_function(lambda: _BREAKER_STATES[breaker.state])
        return cls(name, settings, breaker, Limiter(settings.max_concurrent))


@dataclass(frozen=True)
class Retrying:
    """How repetitions are spread: `jitter` gives a number from 0 to 1."""

    jitter: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]


@dataclass(frozen=True)
class Route:
    """A model that can be asked."""

    choice: Choice
    endpoint: LanguageModel
    provider: ProviderState
    retrying: Retrying

    @property
    def is_open(self) -> bool:
        """Whether a request would be let through now."""
        return self.provider.breaker.would_allow()

    async def ask(self, request: Request, *, has_next: bool) -> AsyncGenerator[Delta, None]:
        """The answer. No more is waited in line and for repetitions than the provider's patience, and half of what the run has
        left: behind the last model there is still an answer by rules. With `has_next`, another model could answer instead: then an
        answer that was cut short, or does not begin in time, counts as a failure.

        Raises ModelUnavailable or ModelRejected.
        """
        settings = self.provider.settings
        clock = asyncio.get_running_loop().time
        give_up_at = clock() + self._patience_s()
        failure: ModelUnavailable | None = None
        for attempt in range(settings.retries + 1):
            begun = False
            try:
                async with aclosing(self._attempt(request, give_up_at - clock(), has_next=has_next)) as deltas:
                    async for delta in deltas:
                        begun = True
                        yield delta
            except _LeftAlone as error:  # perhaps since the last attempt, which then says what is wrong
                raise failure or error from None
            except ModelUnavailable as error:
                wait_s = self._wait_s(error, attempt)
                # What was shown is taken back for another model at most, not for one that broke off.
                if begun or attempt == settings.retries or clock() + wait_s > give_up_at:
                    self._heed(error)
                    raise
                failure = error
            else:
                return
            await self.retrying.sleep(wait_s)

    def restart(self, error: ModelUnavailable | ModelRejected, successor: Choice) -> Restart:
        """The note about a failure when another answer begins."""
        failed = self.choice
        return Restart(failed.provider, failed.model, error.reason, error.message, successor.provider)

    def _patience_s(self) -> float:
        return _half_of_the_run(self.provider.settings.patience_s)

    def _wait_s(self, error: ModelUnavailable, attempt: int) -> float:
        """Full jitter (AWS Architecture Blog, "Exponential Backoff And Jitter"): callers that failed together part. Never less than
        the endpoint asked for."""
        backoff_s = self.retrying.jitter() * min(_LONGEST_BACKOFF_S, _FIRST_BACKOFF_S * 2.0 ** (attempt + 1))
        return backoff_s + (error.retry_after_s or 0.0)

    def _heed(self, error: ModelUnavailable) -> None:
        """A request that failed in spite of its repetitions counts once. An endpoint that said when to come again, later than this
        run can wait, is not asked by others before."""
        if isinstance(error, ProviderBusy):
            return
        if error.retry_after_s:
            self.provider.breaker.pause(error.retry_after_s)
        else:
            self.provider.breaker.failed()

    async def _attempt(self, request: Request, patience_s: float, *, has_next: bool) -> AsyncGenerator[Delta, None]:
        breaker, name = self.provider.breaker, self.provider.name
        async with self.provider.limiter.slot(name, patience_s):
            if not breaker.allow():
                _CALLS.labels(name, "left_alone").inc()
                raise _LeftAlone(name, breaker.wait_s)
            is_probe = breaker.state is not BreakerState.CLOSED
            settle = breaker.abandoned
            outcome = "abandoned"
            clock = asyncio.get_running_loop().time
            began, has_begun = clock(), False
            try:
                async with aclosing(self._deltas(request, has_next=has_next)) as deltas:
                    async for delta in deltas:
                        if not has_begun:
                            has_begun = True
                            _FIRST_SECONDS.labels(name).observe(clock() - began)
                        if isinstance(delta, Finish):
                            settle, outcome = breaker.succeeded, delta.reason.value
                            self.provider.last_failure.clear()
                        yield delta
            except ModelRejected as error:
                settle, outcome = breaker.succeeded, "rejected"  # it lives
                self.provider.last_failure.note(error)
                raise
            except ModelUnavailable as error:
                self.provider.last_failure.note(error)
                settle, outcome = breaker.failed if is_probe else breaker.abandoned, "failed"
                raise
            finally:
                settle()
                _CALLS.labels(name, outcome).inc()
                _SECONDS.labels(name).observe(clock() - began)

    async def _deltas(self, request: Request, *, has_next: bool) -> AsyncGenerator[Delta, None]:
        async with aclosing(self.endpoint.complete(request)) as deltas:
            first = await self._first(deltas, has_next=has_next)
            if first is not None:
                yield self._checked(first, has_next=has_next)
                async for delta in deltas:
                    yield self._checked(delta, has_next=has_next)

    async def _first(self, deltas: AsyncGenerator[Delta, None], *, has_next: bool) -> Delta | None:
        """The first delta, waited for no longer than leaves another model its time."""
        within_s = _half_of_the_run(self.provider.settings.first_delta_timeout_s) if has_next else None
        try:
            async with asyncio.timeout(within_s):
                return await anext(deltas, None)
        except TimeoutError as error:
            raise ModelUnavailable(
                f"{self.choice} sent nothing within {within_s:.1f} s; it may be overloaded", reason="LLM_TIMEOUT"
            ) from error

    def _checked(self, delta: Delta, *, has_next: bool) -> Delta:
        """A finish with the names of the settings. Raises ModelUnavailable where another model could do better."""
        if not isinstance(delta, Finish):
            return delta
        if has_next and delta.reason in _CUT_SHORT:
            reason, what = _CUT_SHORT[delta.reason]
            raise ModelUnavailable(f"{self.choice} {what}", reason=reason)
        return replace(delta, provider=self.choice.provider, model=self.choice.model)


def _half_of_the_run(limit_s: float) -> float:
    """The limit, or half of the time that the run has left if that is less."""
    left_s = deadline.bounded_timeout_s(None)
    return limit_s if left_s is None else min(limit_s, left_s / 2)


class _LeftAlone(ModelUnavailable):
    """The breaker is open."""

    def __init__(self, provider: str, wait_s: float) -> None:
        super().__init__(
            f"{provider} failed again and again and is left alone for {max(1, round(wait_s))} s",
            reason="LLM_LEFT_ALONE",
            retry_after_s=max(wait_s, 0.1),
        )
