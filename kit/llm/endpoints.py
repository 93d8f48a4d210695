"""One model at one endpoint, as Models opens it. It is a LanguageModel that makes one attempt: repetitions are the caller's affair.
A ModelUnavailable has `retry_after_s` when the endpoint said when to come again."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from kit.llm.messages import LanguageModel


@dataclass(frozen=True)
class Address:
    """Where a model is."""

    provider: str
    preset: str
    base_url: str
    api_key: SecretStr
    model: str
    context_tokens: int = 0
    """Tokens of prompt and answer together; 0 where nobody said, so that the endpoint finds out or takes its preset's."""
    tokenizer_file: Path | None = None
    """A tokenizer.json, for a server that does not count tokens."""
    makes_schema_calls: bool = False
    """Whether it calls tools by a JSON Schema; see schema_calls.py."""
    is_brought: bool = False
    """A user named it, not the operator: it is connected to through the guard of kit.network.egress."""


OpenEndpoint = Callable[[Address], AbstractAsyncContextManager[LanguageModel]]
