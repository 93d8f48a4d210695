"""All language models of an installation as one: each operation has a chain of models, and the first that can answers.

    complete(request) → chain of its operation → route (breaker, limiter, retries) → endpoint

A run whose user brought a model of their own asks that one and no other.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from contextvars import ContextVar

from kit import deadline
from kit.breaker import BreakerState
from kit.errors import GroundworkError
from kit.llm.brought import BROUGHT, BroughtModel, brought_model, is_model_brought
from kit.llm.endpoint.tokens.estimate import estimate_tokens
from kit.llm.endpoints import Address, OpenEndpoint
from kit.llm.errors import ModelRejected, ModelUnavailable
from kit.llm.messages import ChatMessage, Delta, ModelInfo, Operation, Request
from kit.llm.providers import PRESET_URLS, Catalog, Choice, Provider
from kit.llm.routes import Failure, ProviderState, Retrying, Route
from kit.llm.sampling import sampled
from kit.network.local_models import LocalModelsOnly, is_bound_to_local_models

_CHECK_TOKENS = 16
"""The least that makes sense: models that think refuse a budget of one token."""
_CHECK_TIMEOUT_S = 10.0
_LEAST_CONTEXT_TOKENS = 4096

Chains = Mapping[Operation, tuple[Route, ...]]


class Models:
    """A LanguageModel over all providers of a catalog. Made by `open_models`."""

    def __init__(
        self, catalog: Catalog, open_endpoint: OpenEndpoint, stack: AsyncExitStack, retrying: Retrying
    ) -> None:
        self.catalog = catalog
        self._retrying = retrying
        self._open_endpoint = open_endpoint
        self._stack = stack
        self._providers = {name: ProviderState.of(name, each) for name, each in catalog.providers.items()}
        self._brought_limits = Provider(base_url="http://user", max_concurrent=256, retries=1)
        self._routes: dict[Choice, Route] = {}
        self._opening = asyncio.Lock()
        self._chains: Chains = {}
        self._held: ContextVar[Chains | None] = ContextVar("held_models", default=None)

    async def use(self, operation: Operation, first: Choice | None = None) -> None:
        """From now on `first` answers the operation, and its configured models stand in for it; None means as configured.

        Completions that have begun keep their model. Raises UnknownModel.
        """
        configured = self.catalog.chains.get(operation, ())
        chain = configured if first is None else [first, *(each for each in configured if each != first)]
        routes = tuple([await self._route(choice) for choice in chain])
        self._chains = {**self._chains, operation: routes}

    async def check(self, choice: Choice) -> None:
        """Has the model write a word. Raises UnknownModel, ModelUnavailable or ModelRejected."""
        self.catalog.require(choice)
        route = await self._route(choice)
        request = Request([ChatMessage("user", "Say OK.")], max_tokens=_CHECK_TOKENS)
        try:
            async with asyncio.timeout(deadline.bounded_timeout_s(_CHECK_TIMEOUT_S)):
                async for _ in route.ask(request, has_next=False):
                    pass
        except TimeoutError as error:
            raise ModelUnavailable(
                f"{choice} did not answer within {_CHECK_TIMEOUT_S:g} s", reason="LLM_TIMEOUT"
            ) from error

    def chain(self, operation: Operation) -> Sequence[Choice]:
        """The models of an operation, the one that is asked first in front."""
        return [route.choice for route in self._chains[operation]]

    def asked_of(self, provider: str) -> frozenset[str]:
        """The provider's models that some operation asks."""
        chains = self._chains.values()
        return frozenset(route.choice.model for chain in chains for route in chain if route.choice.provider == provider)

    def last_failure(self, provider: str) -> Failure | None:
        """The last request of a run that the provider failed, if none has succeeded since."""
        return self._providers[provider].last_failure.failure

    def state(self, provider: str) -> BreakerState:
        """Whether a provider is asked (closed), left alone (open), or tried (half open)."""
        return self._providers[provider].breaker.state

    @contextmanager
    def held(self) -> Iterator[None]:
        """Within the block, a step that asks several times asks the models as they are now, whatever is switched meanwhile."""
        token = self._held.set(self._held.get() or self._chains)
        try:
            yield
        finally:
            self._held.reset(token)

    async def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
        """See LanguageModel. A Restart tells of each model that failed before another was asked."""
        request = sampled(request, self.catalog.sampling)
        async with self._chain_of(request.operation) as chain:
            failures: list[ModelUnavailable | ModelRejected] = []
            for index, route in enumerate(chain):
                rest = chain[index + 1 :]
                has_next = any(each.is_open for each in rest) and not deadline.is_spent()
                try:
                    async with aclosing(route.ask(request, has_next=has_next)) as deltas:
                        async for delta in deltas:
                            yield delta
                except (ModelUnavailable, ModelRejected) as error:
                    failures.append(error)
                    if not rest or deadline.is_spent():
                        raise _all_failed(failures) from error
                    said = route.restart(error, rest[0].choice)
                else:
                    return
                yield said
            raise _no_model()

    def info(self, operation: Operation) -> ModelInfo:
        """The model that would be asked now: the first of the chain whose provider is not left alone. Without a name where there is
        none."""
        try:
            brought = brought_model()
        except GroundworkError:  # reported by the caller that completes
            return ModelInfo(BROUGHT, BROUGHT, _LEAST_CONTEXT_TOKENS)
        if brought is not None and not is_bound_to_local_models():
            return ModelInfo(BROUGHT, brought.model, brought.context_tokens)
        route = self._first(operation)
        return route.endpoint.info(operation) if route else ModelInfo("", "", _LEAST_CONTEXT_TOKENS)

    async def count_tokens(self, texts: Sequence[str], operation: Operation) -> Sequence[int]:
        """See LanguageModel. Nothing is sent to a user's endpoint for it."""
        route = None if is_model_brought() else self._first(operation)
        if route is None:
            return [estimate_tokens(text) for text in texts]
        return await route.endpoint.count_tokens(texts, operation)

    @asynccontextmanager
    async def _chain_of(self, operation: Operation) -> AsyncIterator[Sequence[Route]]:
        brought = brought_model()
        if brought is None:
            yield self._allowed(operation)
            return
        if is_bound_to_local_models():
            raise ModelRejected(
                "this allows local models only, and the model that you brought is not one; ask without it",
                reason=LocalModelsOnly.reason,
            )
        async with self._open_endpoint(_address_of(brought)) as endpoint:
            # Its failures say nothing about anybody else's: a breaker and a limiter of its own.
            state = ProviderState.of(BROUGHT, self._brought_limits)
            yield [Route(Choice(BROUGHT, brought.model), endpoint, state, self._retrying)]

    def _current(self) -> Chains:
        return self._held.get() or self._chains

    def _allowed(self, operation: Operation) -> Sequence[Route]:
        """The chain of an operation, without the models that the work in hand must not ask."""
        chain = self._current()[operation]
        return [route for route in chain if self._is_local(route.choice)] if is_bound_to_local_models() else chain

    def _is_local(self, choice: Choice) -> bool:
        return self.catalog.providers[choice.provider].is_local

    def _first(self, operation: Operation) -> Route | None:
        chain = self._allowed(operation)
        return next((route for route in chain if route.is_open), chain[0] if chain else None)

    async def _route(self, choice: Choice) -> Route:
        """The route of a model, opened once and kept while the process lives."""
        async with self._opening:
            if choice not in self._routes:
                provider = self.catalog.require(choice)
                spec = provider.spec(choice.model)
                address = Address(
                    choice.provider,
                    provider.preset,
                    provider.url,
                    provider.key(),
                    choice.model,
                    spec.context_tokens,
                    provider.tokenizer_file,
                    makes_schema_calls=spec.tool_calls == "schema",
                )
                endpoint = await self._stack.enter_async_context(self._open_endpoint(address))
                self._routes[choice] = Route(choice, endpoint, self._providers[choice.provider], self._retrying)
            return self._routes[choice]


@asynccontextmanager
async def open_models(
    catalog: Catalog | None,
    open_endpoint: OpenEndpoint,
    *,
    jitter: Callable[[], float] = random.random,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncIterator[Models]:
    """The models of a catalog, each operation as configured. Without one there are none but those that users bring."""
    async with AsyncExitStack() as stack:
        models = Models(catalog or Catalog({}, {}), open_endpoint, stack, Retrying(jitter, sleep))
        for operation in Operation:
            await models.use(operation)
        yield models


def _no_model() -> ModelUnavailable:
    if is_bound_to_local_models():
        return ModelUnavailable(
            "this allows local models only, and no local model is configured for it; see `local` in GROUNDWORK_LLM_PROVIDERS",
            reason=LocalModelsOnly.reason,
            retryable=False,
        )
    return ModelUnavailable("no model is configured; set GROUNDWORK_LLM_PROVIDERS", retryable=False)


def _address_of(model: BroughtModel) -> Address:
    base_url = model.base_url or PRESET_URLS[model.preset]
    return Address(BROUGHT, model.preset, base_url, model.api_key, model.model, model.context_tokens, is_brought=True)


def _all_failed(failures: Sequence[ModelUnavailable | ModelRejected]) -> ModelUnavailable | ModelRejected:
    """The one failure as it is; of several, one that names all. It is worth asking again if any of them is."""
    if len(failures) == 1:
        return failures[0]
    reasons = "; ".join(failure.message for failure in failures)
    message = f"no model answered: {reasons}"
    passing = [failure for failure in failures if isinstance(failure, ModelUnavailable)]
    return ModelUnavailable(message, reason=passing[-1].reason) if passing else ModelRejected(message)
