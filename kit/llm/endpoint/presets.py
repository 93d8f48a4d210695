"""What the providers do differently behind the same API. One row a provider; whatever a row does not say is as OpenAI documents it.

Sources: the providers' pages on OpenAI compatibility, ollama/ollama#15457 (all calls have index 0) and #7881, the models' lists of
vLLM and llama.cpp, and what these servers sent when tried.
"""

import re
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit


class Schemas(Enum):
    """How a provider is made to follow a JSON Schema."""

    RESPONSE_FORMAT = "response_format"
    PROMPT = "prompt"
    """It ignores `response_format`: the schema stands in the prompt, and the caller checks the answer."""


class TokenizerApi(Enum):
    """The two shapes of `POST /tokenize`."""

    NONE = "none"
    VLLM = "vllm"
    LLAMA_CPP = "llama.cpp"


_NEVER = re.compile(r"(?!)")


@dataclass(frozen=True)
class Preset:
    """One provider's ways."""

    name: str
    base_url: str = ""
    """Where it is when nothing else is said."""

    hosts: tuple[str, ...] = ()
    """Host names, ends of host names (".example.com") and ports (":11434") by which its address is recognised."""

    owner: str = ""
    """`owned_by` in its list of models, by which a server at any address is recognised."""

    context_tokens: int = 0
    """Window of its smallest current model, in tokens. 0: the server says it."""

    max_tokens_field: str = "max_tokens"
    """OpenAI's reasoning models refuse `max_tokens`, all its models take `max_completion_tokens`; older servers know only the
    first."""

    highest_temperature: float = 2.0
    schemas: Schemas = Schemas.RESPONSE_FORMAT
    obeys_tool_choice: bool = True
    """False: a forced call is asked for by offering that tool alone."""

    strict_tools: bool = False
    """Whether it holds calls to their schemas only where a tool is `strict`, and takes that for any schema (OpenAI does not)."""

    tokenizer: TokenizerApi = TokenizerApi.NONE
    thinking_models: re.Pattern[str] = _NEVER
    """Models that think before they answer, and whose thoughts count as tokens written."""

    thinkers_take_temperature: bool = True


GENERIC = Preset("openai-compatible")
"""A server that nobody recognised: what every one of them understands."""

PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            "openai",
            "https://api.openai.com/v1",
            hosts=("api.openai.com", ".openai.azure.com"),
            context_tokens=128_000,
            max_tokens_field="max_completion_tokens",
            thinking_models=re.compile(r"^(o\d|gpt-5(?!.*chat))"),
            thinkers_take_temperature=False,
        ),
        Preset(
            "anthropic",
            "https://api.anthropic.com/v1",
            hosts=("api.anthropic.com",),
            context_tokens=200_000,
            highest_temperature=1.0,
            schemas=Schemas.PROMPT,
        ),
        Preset(
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta/openai",
            hosts=("generativelanguage.googleapis.com",),
            context_tokens=1_000_000,
            thinking_models=re.compile(r"gemini-(2\.5|[3-9])"),
        ),
        Preset(
            "grok",
            "https://api.x.ai/v1",
            hosts=("api.x.ai",),
            context_tokens=131_072,
            max_tokens_field="max_completion_tokens",
            thinking_models=re.compile(r"^grok-(3-mini|[4-9](?!.*non-reasoning))"),
        ),
        Preset(
            "ollama",
            "http://127.0.0.1:11434/v1",
            hosts=(":11434",),
            owner="library",
            context_tokens=4096,  # what a longer prompt is cut to without a word, unless the server is configured otherwise
            obeys_tool_choice=False,
        ),
        Preset("vllm", "http://127.0.0.1:8000/v1", owner="vllm", strict_tools=True, tokenizer=TokenizerApi.VLLM),
        Preset("llama.cpp", "http://127.0.0.1:8080/v1", owner="llamacpp", tokenizer=TokenizerApi.LLAMA_CPP),
        GENERIC,
    )
}

REASONING_TOKENS = 4096
"""Room for the thoughts of a model that thinks: with the 600 tokens of an answer it would never get to the answer."""


def preset_named(name: str) -> Preset:
    """Raises ValueError, with the names there are."""
    if name not in PRESETS:
        raise ValueError(f"there is no preset {name!r}; take one of {', '.join(PRESETS)}")
    return PRESETS[name]


def preset_of_address(base_url: str) -> Preset:
    """The provider at a well-known address; GENERIC for all others. Raises ValueError for a port that is none."""
    url = urlsplit(base_url)
    host, port = (url.hostname or "").lower(), f":{url.port}"
    for preset in PRESETS.values():
        for known in preset.hosts:
            if known in {host, port} or (known.startswith(".") and host.endswith(known)):
                return preset
    return GENERIC


def preset_of_owner(owner: str) -> Preset | None:
    """The kind of server whose list of models says `owned_by` this."""
    return next((preset for preset in PRESETS.values() if preset.owner and preset.owner == owner), None)
