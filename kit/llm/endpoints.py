"""What Models needs of one model at one endpoint, and how it is opened."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from pydantic import SecretStr

from kit.llm.messages import Delta, ModelInfo, Request


@dataclass(frozen=True)
class Address:
    """One model at one endpoint."""

    provider: str
    preset: str
    base_url: str
    api_key: SecretStr
    model: str
    context_tokens: int = 0
    """Tokens of prompt and answer together; 0 where nobody said, so that the endpoint finds out or takes its preset's."""
    is_brought: bool = False
    """A user named it, not the operator: it is connected to through the guard of kit.egress."""


class Endpoint(Protocol):
    """One model. It makes one attempt: repetitions are made by who calls it."""

    @property
    def info(self) -> ModelInfo: ...

    def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
        """Deltas, the last being Finish. Raises ModelUnavailable (with `retry_after_s` when the endpoint said when to come again)
        or ModelRejected, possibly after some deltas."""
        ...

    async def count_tokens(self, texts: Sequence[str]) -> Sequence[int]:
        """Tokens of each text, or an estimate from above. Never fails."""
        ...


OpenEndpoint = Callable[[Address], AbstractAsyncContextManager[Endpoint]]
