"""What models cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from kit.llm.messages import TokenUsage

_MILLION = 1e6


class ModelUsage(Protocol):
    """Tokens that a provider's model has used: of a whole completion (Finish), or of an attempt."""

    @property
    def provider(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def usage(self) -> TokenUsage: ...


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens."""

    prompt_usd: float = 0.0
    completion_usd: float = 0.0

    def cost_usd(self, usage: TokenUsage) -> float:
        return (usage.prompt_tokens * self.prompt_usd + usage.completion_tokens * self.completion_usd) / _MILLION


class PriceTable:
    """The price of each provider's models. What has no price, such as a model that a user brings, costs nothing."""

    def __init__(self, prices: Mapping[tuple[str, str], Price]) -> None:
        self._prices = prices

    def cost_usd(self, spent: ModelUsage) -> float:
        """Dollars for the tokens of one completion."""
        return self._prices.get((spent.provider, spent.model), Price()).cost_usd(spent.usage)
