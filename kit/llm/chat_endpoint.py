"""ChatModel as the Endpoint of one model."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import httpx

from kit.egress import AddressRefused, EgressGuard, NameNotFound, UrlRefused
from kit.llm.chat import ChatModel, open_chat_model
from kit.llm.endpoints import Address, OpenEndpoint
from kit.llm.errors import ModelRejected
from kit.llm.guarded_http import guarded_transport
from kit.llm.messages import (
    Delta,
    Finish,
    FinishReason,
    LanguageModel,
    ModelInfo,
    Operation,
    Request,
    TextDelta,
    TokenUsage,
)

_CONTEXT_TOKENS = 4096


class ChatEndpoint:
    """Endpoint over ChatModel."""

    def __init__(self, model: ChatModel, info: ModelInfo) -> None:
        self._model = model
        self._info = info

    def info(self, operation: Operation) -> ModelInfo:  # noqa: ARG002 - it has one model for all
        return self._info

    async def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
        pieces = self._model.stream(request.messages, max_tokens=request.max_tokens, temperature=request.temperature)
        usage = TokenUsage()
        async with aclosing(pieces) as stream:  # type: ignore[type-var] # a generator in fact
            async for piece in stream:
                if isinstance(piece, TokenUsage):
                    usage = piece
                else:
                    yield TextDelta(piece)
        yield Finish(FinishReason.STOP, usage, self._info.provider, self._info.model)

    async def count_tokens(self, texts: Sequence[str], operation: Operation) -> Sequence[int]:  # noqa: ARG002
        return [len(text.encode("utf-8", "replace")) for text in texts]


def endpoint_opener(guard: EgressGuard, *, stall_timeout_s: float) -> OpenEndpoint:
    """Opens endpoints; those that users bring, through the guard."""

    @asynccontextmanager
    async def open_endpoint(address: Address) -> AsyncIterator[LanguageModel]:
        async with AsyncExitStack() as stack:
            client = None
            if address.is_brought:
                await _check(guard, address.base_url)
                client = await stack.enter_async_context(
                    httpx.AsyncClient(transport=guarded_transport(guard), follow_redirects=False)
                )
            model = await stack.enter_async_context(
                open_chat_model(
                    address.base_url,
                    address.api_key.get_secret_value(),
                    address.model,
                    stall_timeout_s=stall_timeout_s,
                    http_client=client,
                )
            )
            context_tokens = address.context_tokens or _CONTEXT_TOKENS
            yield ChatEndpoint(model, ModelInfo(address.provider, address.model, context_tokens))

    return open_endpoint


async def _check(guard: EgressGuard, url: str) -> None:
    try:
        await guard.check(url)
    except (UrlRefused, AddressRefused, NameNotFound) as error:
        raise ModelRejected(error.message, reason=error.reason) from error
