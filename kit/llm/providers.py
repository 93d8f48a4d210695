"""Who offers models, and which model each operation gets: what the settings say, read and checked once at the start.

Providers are a JSON object by name, operations a JSON object of models, the first choice first:

    {"openai": {"preset": "openai", "api_key": "sk-…", "models": {"gpt-4.1-mini": {"context_tokens": 128000, "prompt_usd": 0.4}}},
     "gpu":    {"preset": "vllm", "base_url": "http://vllm:8000/v1", "models": {"Qwen/Qwen3-8B": {"context_tokens": 32768}}}}
    {"answer": ["openai/gpt-4.1-mini", "gpu/Qwen/Qwen3-8B"], "default": ["gpu/Qwen/Qwen3-8B"]}
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints, ValidationError, field_validator
from pydantic import model_validator as validates_model

from kit.errors import InvalidArgument
from kit.llm.endpoint.presets import PRESETS
from kit.llm.endpoint.tokens.counting import check_tokenizer_file
from kit.llm.messages import Operation
from kit.llm.prices import Price, PriceTable
from kit.llm.sampling import Sampling
from kit.network.local_models import is_local_url

PRESET_URLS: Mapping[str, str] = {**{name: preset.base_url for name, preset in PRESETS.items()}, "": ""}
"""The kinds of provider, and where each is unless `base_url` says otherwise. One that is not named follows from its address."""

DEFAULT = "default"

ToolCalls = Literal["native", "schema"]

ProviderName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_.-]{0,39}$")]


class UnknownModel(InvalidArgument):
    """No provider of that name, or no such model there."""

    reason = "UNKNOWN_MODEL"


class ModelSpec(BaseModel):
    """What is known of a model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    context_tokens: int = Field(default=0, ge=0)
    """Tokens of prompt and answer together; 0 where the server says it, or the preset."""
    prompt_usd: float = Field(default=0.0, ge=0)
    """Dollars per million tokens that it reads."""
    completion_usd: float = Field(default=0.0, ge=0)
    """Dollars per million tokens that it writes."""
    tool_calls: ToolCalls = "native"
    """How it calls tools: `native`, by the API's tool calls; or `schema`, by a JSON Schema that its server holds it to, for models
    and servers that know no tool calls."""


class Provider(BaseModel):
    """One provider: how it is reached, what it offers, and how much is asked of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    preset: str = ""
    """One of PRESET_URLS: the quirks of its API, and its address unless `base_url` says otherwise."""
    base_url: str = ""
    """OpenAI-compatible endpoint, usually ending in /v1."""
    api_key: SecretStr = SecretStr("")
    """Key, if it wants one."""
    api_key_file: Path | None = None
    """File with the key, read at the start: a mounted secret."""
    models: Mapping[str, ModelSpec] = {}
    """Its models by name; the first is its default."""
    tokenizer_file: Path | None = None
    """A tokenizer.json of its models, for a server that does not count tokens."""
    local: bool | None = None
    """Whether its models are local: collections may allow local models only. Left out, its address decides, as in
    kit.network.local_models; say false of a local proxy for a model outside."""
    any_model: bool = False
    """Whether an operation may be switched to a model that is not listed."""
    max_concurrent: int = Field(default=16, ge=1)
    """Requests at once from this process. What is above waits in line."""
    patience_s: float = Field(default=10.0, ge=0)
    """Longest that a run waits in line, and for repetitions, before it goes to the next model of its chain; at most half of the
    time that the run has left."""
    retries: int = Field(default=2, ge=0, le=10)
    """Repetitions of a request that failed in a way that may pass."""
    first_delta_timeout_s: float = Field(default=30.0, gt=0)
    """Longest wait for the first piece of an answer, when another model of the chain could answer instead. A loaded GPU queues for
    seconds."""
    breaker_failures: int = Field(default=5, ge=1)
    """So many requests that failed, repetitions and all, within `breaker_window_s`, and the provider is left alone for
    `breaker_open_s`."""
    breaker_window_s: float = Field(default=30.0, gt=0)
    breaker_open_s: float = Field(default=5.0, gt=0)

    @field_validator("preset")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if value not in PRESET_URLS:
            raise ValueError(f"it must be one of {', '.join(filter(None, PRESET_URLS))}")
        return value

    @validates_model(mode="after")
    def _can_be_reached(self) -> Self:
        url = self.base_url or PRESET_URLS[self.preset]
        if not url:
            raise ValueError("it needs a preset or a base_url, as in http://127.0.0.1:8000/v1")
        if not is_endpoint_url(url):
            raise ValueError(
                "base_url must be an http:// or https:// URL without ? or #, as in http://127.0.0.1:8000/v1"
            )
        if self.api_key_file and self.api_key.get_secret_value():
            raise ValueError("api_key and api_key_file are both set; set one of the two")
        if self.tokenizer_file is not None:
            check_tokenizer_file(self.tokenizer_file)
        try:
            self.key()
        except OSError as error:
            raise ValueError(f"api_key_file {self.api_key_file} cannot be read ({error.strerror})") from None
        return self

    @property
    def url(self) -> str:
        return self.base_url or PRESET_URLS[self.preset]

    @property
    def is_local(self) -> bool:
        return is_local_url(self.url) if self.local is None else self.local

    def key(self) -> SecretStr:
        """The key, from its file if it has one. Raises OSError."""
        return SecretStr(self.api_key_file.read_text("utf-8").strip()) if self.api_key_file else self.api_key

    def offers(self, model: str) -> bool:
        return model in self.models or self.any_model or not self.models

    def spec(self, model: str) -> ModelSpec:
        return self.models.get(model) or ModelSpec()


@dataclass(frozen=True)
class Choice:
    """A model of a provider."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}/{self.model}"

    @classmethod
    def parse(cls, text: str) -> "Choice":
        """`provider/model`; the model's name may have slashes of its own. Raises UnknownModel."""
        provider, slash, model = text.partition("/")
        if not slash or not provider or not model:
            raise UnknownModel(f"{text[:80]!r} is not a model; write provider/model, as in openai/gpt-4.1-mini")
        return cls(provider, model)


@dataclass(frozen=True)
class Catalog:
    """All providers, and the chain of models of each operation: the first answers, the others stand in for it, in this order."""

    providers: Mapping[str, Provider]
    chains: Mapping[Operation, Sequence[Choice]]
    sampling: Mapping[Operation, Sampling] = field(default_factory=dict)
    """How the words of an operation are chosen, where the operator says."""

    def require(self, choice: Choice) -> Provider:
        """The provider of a model. Raises UnknownModel, which says what there is."""
        provider = self.providers.get(choice.provider)
        if provider is None:
            known = ", ".join(self.providers) or "none; set GROUNDWORK_LLM_PROVIDERS"
            raise UnknownModel(f"there is no provider {choice.provider[:80]!r}; there are {known}")
        if not choice.model or not provider.offers(choice.model):
            offered = ", ".join(provider.models) or "any that it serves, by name"
            raise UnknownModel(f"{choice.provider} has no model {choice.model[:80]!r}; it has {offered}")
        return provider

    def prices(self) -> PriceTable:
        return PriceTable(
            {
                (name, model): Price(spec.prompt_usd, spec.completion_usd)
                for name, provider in self.providers.items()
                for model, spec in provider.models.items()
            }
        )


def parse_providers(text: str) -> Mapping[str, Provider]:
    """The providers of the settings. Raises ValueError with a sentence for the operator; it never quotes a key."""
    providers = {name: _provider(name, value) for name, value in _object(text, "providers").items()}
    if not providers:
        raise ValueError("it names no provider")
    return providers


def make_catalog(providers: Mapping[str, Provider], operations_json: str = "") -> Catalog:
    """The catalog of these providers. An operation that is not named has the chain of `default`; without that, the first model of
    each provider. Raises ValueError with a sentence for the operator."""
    catalog = Catalog(providers, {})
    given = {
        name: [_choice(catalog, text) for text in _texts(name, value)]
        for name, value in (_object(operations_json, "operations") if operations_json.strip() else {}).items()
    }
    if unknown := sorted(given.keys() - {DEFAULT, *(each.value for each in Operation)}):
        known = ", ".join(each.value for each in Operation)
        raise ValueError(f"there is no operation {unknown[0]!r}; there are {known} and {DEFAULT}")
    others = given.get(DEFAULT) or _first_models(providers)
    return Catalog(providers, {each: tuple(given.get(each.value, others)) for each in Operation})


def parse_sampling(text: str) -> Mapping[Operation, Sampling]:
    """How each operation is sampled, of the settings. Raises ValueError with a sentence for the operator."""
    by_name = {each.value: each for each in Operation}
    found = {}
    for name, value in _object(text, "sampling").items():
        if name not in by_name:
            raise ValueError(f"there is no operation {name[:40]!r}; there are {', '.join(by_name)}")
        try:
            given = _OperatorsSampling.model_validate(value)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]
            where = ".".join([name, *map(str, problem["loc"])])
            raise ValueError(f"sampling of {where}: {problem['msg']}") from None
        found[by_name[name]] = Sampling(given.temperature, given.top_p)
    return found


class _OperatorsSampling(BaseModel):
    model_config = ConfigDict(extra="forbid")

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)


def _first_models(providers: Mapping[str, Provider]) -> list[Choice]:
    chain = [Choice(name, next(iter(provider.models))) for name, provider in providers.items() if provider.models]
    if not chain:
        raise ValueError('no provider lists a model, and GROUNDWORK_LLM_OPERATIONS names none; list one under "models"')
    return chain


def _provider(name: str, value: Any) -> Provider:
    try:
        return _Named(name=name, provider=value).provider
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in problem["loc"][1:])
        reason = str(problem.get("ctx", {}).get("error", problem["msg"]))
        raise ValueError(f"provider {name[:40]!r}{f', {place}' if place else ''}: {reason}") from None


class _Named(BaseModel):
    name: ProviderName
    provider: Provider


def _choice(catalog: Catalog, text: str) -> Choice:
    try:
        choice = Choice.parse(text)
        catalog.require(choice)
    except UnknownModel as error:
        raise ValueError(error.message) from None
    return choice


def _texts(name: str, value: Any) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError(f'operation {name!r} must be a model, or a list of models, as in ["openai/gpt-4.1-mini"]')
    return texts


def _object(text: str, what: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"the {what} are not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"the {what} must be a JSON object by name")  # noqa: TRY004 - it is text of the settings
    return value


def is_endpoint_url(text: str) -> bool:
    """Whether it is an http or https URL with a host, and with nothing behind its path: what is asked for goes there."""
    try:
        url = urlsplit(text)
        port = url.port  # read for its check
    except ValueError:
        return False
    if not url.hostname or port == 0 or any(map(str.isspace, text)):
        return False
    return url.scheme in {"http", "https"} and "?" not in text and "#" not in text
