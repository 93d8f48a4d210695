"""The orchestrator's settings."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from kit.llm.endpoint.presets import preset_named
from kit.llm.endpoint.tokens.counting import check_tokenizer_file
from kit.llm.providers import (
    DEFAULT,
    Catalog,
    ModelSpec,
    Provider,
    ToolCalls,
    is_endpoint_url,
    make_catalog,
    parse_providers,
    parse_sampling,
)
from kit.network.egress import parse_networks
from kit.process.settings import Folders, MessageStoreSettings, SigningServiceSettings
from kit.vocabulary.memory_modes import MemoryMode
from services.orchestrator.log.events import CheckedBy
from services.orchestrator.verification.verdicts import measured_judges


class OrchestratorSettings(MessageStoreSettings, SigningServiceSettings):
    """Settings of the orchestrator."""

    retriever_address: str = "127.0.0.1:7002"
    """host:port of the retriever."""

    reranker_address: str = "127.0.0.1:7001"
    """host:port of the model server: it scores sentences for extractive answers."""

    ingest_address: str = "127.0.0.1:7003"
    """host:port of the ingest service, which lists the documents of a collection."""

    memory_address: str = "127.0.0.1:7006"
    """host:port of the memory service."""

    tools_address: str = "127.0.0.1:7007"
    """host:port of the tools service."""

    llm_base_url: str | None = None
    """OpenAI-compatible endpoint, ending in /v1. Without it answers are extractive."""

    llm_api_key: SecretStr = SecretStr("")
    """Key for that endpoint. Local servers need none."""

    llm_model: str = "default"
    """Model name at that endpoint."""

    llm_preset: str = ""
    """Kind of provider: openai, anthropic, gemini, grok, ollama, vllm, llama.cpp or openai-compatible. Empty: the address decides,
    or what the server says of itself."""

    llm_context_tokens: int = Field(default=0, ge=0)
    """Tokens of prompt and answer together. 0: as the server says, else as is known of the model's name, else the preset's, else
    16 384. A server that refuses a prompt as too long and names its limit is believed, and the prompt is made anew."""

    llm_tool_calls: ToolCalls = "native"
    """How that model calls tools: `native`, by the API's tool calls; or `schema`, by a JSON Schema that its server holds it to, for
    models and servers that know no tool calls. Such a model makes one call at a time."""

    llm_local: bool | None = None
    """Whether that endpoint is local: a collection may allow local models only. Left out, its address decides: this machine, and
    names of the same cluster or Compose project (`vllm`, `vllm.models.svc`) are local. Say false of a proxy for a model outside."""

    llm_tokenizer_file: Path | None = None
    """A tokenizer.json of the model, for a server that does not count tokens. Without it they are estimated from above."""

    llm_completion_timeout_s: float = Field(default=90.0, gt=0)
    """Longest completion, also of a model that never falls silent; at most 85 % of the time that the run has left, so that the
    fallback can still answer."""

    llm_providers: SecretStr = SecretStr("")
    """More providers of language models, as a JSON object by name; see
    [Language models](operations/language-models.md#language-models). The one of `llm_base_url` is called `default` beside them."""

    llm_providers_file: Path | None = None
    """File with those providers instead, read at the start: a mounted secret."""

    llm_operations: str = ""
    """Which models each operation asks, in their order, as a JSON object: `{"answer": ["openai/gpt-4.1", "gpu/qwen3"], "default":
    "gpu/qwen3"}`. Operations are plan, answer, verify, summarise and facts; what is not named does as `default`, and without that
    asks the first model of each provider in turn."""

    llm_sampling: str = ""
    """How models choose their words, for each operation, as a JSON object: `{"answer": {"temperature": 0.3, "top_p": 0.9}}`. What
    is not named has temperature 0 and the provider's own top_p. Requests of OpenAI's API may say otherwise for their answer."""

    model_credentials_life_s: float = Field(default=3600.0, gt=0, le=3600.0)
    """How long the key of a model that a user brings with a question is kept, sealed, for a run that does not end: longer than any
    run takes. What lives for an hour at most is not part of backups."""

    egress_allowed_networks: str = ""
    """Networks that are not public and may be connected to when a user names them all the same, in CIDR notation with commas
    between them: `10.20.0.0/16`. None by default."""

    llm_stall_timeout_s: float = Field(default=30.0, gt=0)
    """Longest wait for the model's next piece. A loaded GPU queues for seconds; half a minute of silence is an outage."""

    llm_prompt_usd_per_million_tokens: float = Field(default=0.0, ge=0)
    """Price of what the model of `llm_base_url` reads, for the cost shown with each run. 0 where nobody is charged."""

    llm_completion_usd_per_million_tokens: float = Field(default=0.0, ge=0)
    """Price of what it writes."""

    evidence_top_k: int = Field(default=8, ge=1, le=50)
    """Passages in the evidence set. More cost prompt tokens and rarely help."""

    agents_folders: Folders = ()
    """Folders, comma-separated, whose Python files are agents too: the files are read at the start and run as this service, so
    nobody else may write there. See [agents](agents.md)."""

    history_turns: int = Field(default=8, ge=0, le=100)
    """Messages of the thread that the model is shown."""

    answer_tokens: int = Field(default=600, ge=16)
    """Tokens that a model may write, unless the run's budget says otherwise."""

    run_wall_clock_s: float = Field(default=120.0, gt=0)
    """Seconds that may be worked on a run, the default and the most. What it waits for a process or a person does not count."""

    run_max_steps: int = Field(default=100, ge=4)
    """Recorded steps a run may take, the default and the most that a request gets. An answer from documents takes four;
    the bound is for a run that goes round in circles."""

    run_max_tool_calls: int = Field(default=50, ge=0)
    """Calls of tools a run may make, the default and the most. 0 means no limit."""

    run_max_parallel_calls: int = Field(default=4, ge=1)
    """Calls of tools under way at once in one run, the default and the most; more wait for their turn."""

    run_max_tokens: int = Field(default=200_000, ge=0)
    """Tokens that models may read and write for one run, the default and the most. 0 means no limit. An answer from documents takes
    3 000; the bound is for a run that goes round in circles."""

    run_max_cost_usd: float = Field(default=0.0, ge=0)
    """Dollars that models may cost for one run, the default and the most. 0 means no limit."""

    run_credits: int = Field(default=1, ge=0)
    """Credits that an answer takes, where credits were granted (`groundwork limits grant`)."""

    research_credits: int = Field(default=10, ge=0)
    """Credits that a run of the research agent takes."""

    run_max_reasoning_steps: int = Field(default=10, ge=1)
    """The most times that a run may let its model ask for tools before it has to answer."""

    chat_tool_calling: bool = True
    """Whether the model of a chat calls tools itself. Off for models that call them badly: then the words of the message decide
    whether to search the documents, do a sum, or say what time it is. The same holds without a model, and with a model that takes
    no tools."""

    chat_tool_choice: Literal["auto", "required"] = "auto"
    """Whether the model of a chat decides by itself to call a tool (`auto`), or must call one before it answers what is no small
    talk (`required`): small models seldom call one by themselves."""

    chat_reasoning_steps: int = Field(default=3, ge=1)
    """How often the model of a chat may ask for tools, unless the request says otherwise, which may ask for
    `run_max_reasoning_steps`. Few, so that an agent explores and does not wander."""

    chat_tool_calls: int = Field(default=6, ge=1)
    """Calls of tools in a chat, unless the request says otherwise, which may ask for `run_max_tool_calls`."""

    chat_parallel_calls: int = Field(default=3, ge=1)
    """Calls of tools under way at once in a chat, unless the request says otherwise, which may ask for `run_max_parallel_calls`."""

    agentic_runs_max: int = Field(default=64, ge=0)
    """Chats that one orchestrator serves with tools at once. Chats beyond it get one search and one answer, as `qa` does, and the
    answer says so: each round with tools asks the model again. 0 means no limit."""

    research_enabled: bool = True
    """Whether `POST /v1/agent` researches. Off: its questions get one search and one answer, as those of `/v1/qa`, with a note that
    says so. At run time `groundwork agents disable research` does the same on all replicas."""

    research_failure_rate: float = Field(default=0.5, gt=0, le=1)
    """Share of the last 20 research runs of a replica that may break before it answers by one search for half a minute; then one
    run tries whether research works again."""

    approval_expiry_s: float = Field(default=86_400.0, ge=60.0, le=6 * 86_400.0)
    """Seconds for which a call of a tool waits for a person's decision before it counts as denied: a day, so that who was asked in
    the evening may decide in the morning. At most six days, for the tools service knows call ids for seven, and half of
    `run_retention_days`."""

    run_search_timeout_s: float = Field(default=10.0, gt=0)
    """Longest wait for the retriever. A healthy one answers in 30 ms."""

    run_score_timeout_s: float = Field(default=2.0, gt=0)
    """Longest wait for sentence scores; after it the answer rests on lexical cues."""

    guard: Literal["pass", "flag", "block"] = "flag"
    """What becomes of a question that gives orders to the model, asks for its secrets or asks for harm. `pass`: nothing. `flag`:
    its run says so. `block`: it is refused with `QUESTION_BLOCKED`. A request may be stricter, never milder. Documents and results
    of tools that give orders are flagged always."""

    guard_canary: bool = True
    """Whether each system prompt begins with a secret mark, and a text or a call in which the model repeats it is stopped. Off
    saves a model with a very short context 64 tokens."""

    grounded_answers: Literal["streamed", "checked"] = "streamed"
    """How a model answers in grounded chat. `streamed`: each word is shown as it is written, and judged behind it. `checked`: it
    gives an object with the answer, its sources and whether they carry it, and nothing is shown before that is checked: the first
    word comes when the last is written. A model that does not follow the schema streams."""

    verify: Literal["mark", "remove", "off"] = "mark"
    """What becomes of a claim that its sources do not carry, unless the request says otherwise. `mark`: it loses its citation and
    is shown as not found. `remove`: its sentence is left out of the answer. `off`: nothing is checked."""

    verify_judge: Literal["auto", "learned", "words"] = "auto"
    """What judges the claims of answers that a model has written. `auto`: the language model of the operation `verify` where there
    is one, and should it fail the judge of the model server. `learned`: that judge alone. `words`: the share of words in common,
    which is often wrong; the others come down to it, too, when nothing else answers."""

    verify_figures_file: Path | None = None
    """File with how often language models are wrong as judges, as `make eval ARGS="claims --answers"` prints it. An answer is said
    to be carried by its sources without a reservation only where its judge has such figures, and they are small enough."""

    verify_timeout_s: float = Field(default=10.0, gt=0)
    """Longest wait for the judge of the model server. It reads five unknown passages in 0.2 to 1 s."""

    verify_model_timeout_s: float = Field(default=30.0, gt=0)
    """Longest wait for a language model that judges claims; after it the judge of the model server does. A model on a processor may
    need longer than its verdicts are worth."""

    run_tools_timeout_s: float = Field(default=2.0, gt=0)
    """Longest wait for the list of tools; after it the run goes on without any. Each tool has its own limit for a call."""

    run_memory_timeout_s: float = Field(default=2.0, gt=0)
    """Longest wait for the thread's history; after it the run goes on without."""

    run_memory_write_timeout_s: float = Field(default=10.0, gt=0)
    """Longest wait for the turn to be kept in its thread, after the answer has been said; after it the thread lacks this turn. A
    restart of the memory service is shorter."""

    memory: MemoryMode = "auto"
    """How chats use what is remembered of their users, unless the request says otherwise. `auto`: the model gets the summary
    and, for messages of more than ten characters, the three facts that fit best. `always`: for every message. `agentic`:
    nothing; the model may search with the tool `memory_search`. `off`: nothing is used, and nothing is learnt."""

    memory_learn_timeout_s: float = Field(default=30.0, gt=0)
    """Longest wait for a turn to be learnt from, long after its answer was said; after it the turn is tried again."""

    run_lease_s: float = Field(default=5.0, gt=0.3)
    """Seconds after which the runs of an orchestrator that has fallen silent are taken over. It renews its lease three times in
    it."""

    run_access_check_s: float = Field(default=20.0, gt=0)
    """Seconds between two looks at whether the callers of runs under way may still read what their runs have read. A run whose
    caller may not ends with ACCESS_WITHDRAWN."""

    run_key_ttl_s: float = Field(default=86_400.0, ge=60.0)
    """Seconds for which an idempotency key is remembered. A client that has not had its answer in a day has given up."""

    max_concurrent_runs: int = Field(default=256, ge=1)
    """Runs that one orchestrator works on at once; more are refused with RESOURCE_EXHAUSTED."""

    run_retention_days: float = Field(default=30.0, gt=0)
    """How long finished runs can be replayed."""

    usage_retention_days: float = Field(default=400.0, gt=0)
    """How long it is known what a run has cost: a year and a month to look back from. Runs themselves may go earlier."""

    @field_validator("llm_preset")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if value:
            preset_named(value)
        return value

    @field_validator("verify_figures_file")
    @classmethod
    def _holds_figures(cls, value: Path | None) -> Path | None:
        if value is not None:
            _judges_of(value)
        return value

    @field_validator("llm_tokenizer_file")
    @classmethod
    def _is_tokenizer(cls, value: Path | None) -> Path | None:
        if value is not None:
            check_tokenizer_file(value)
        return value

    @field_validator("llm_base_url", "llm_tokenizer_file", "verify_figures_file", mode="before")
    @classmethod
    def _empty_is_not_set(cls, value: object) -> object:
        return None if isinstance(value, str) and not value.strip() else value

    @field_validator("llm_base_url")
    @classmethod
    def _is_web_address(cls, value: str | None) -> str | None:
        if value is not None and not is_endpoint_url(value):
            raise ValueError(
                "it must be an http:// or https:// URL without ? or #, and should end in /v1, as in http://127.0.0.1:8000/v1"
            )
        return value

    @field_validator("llm_providers")
    @classmethod
    def _are_providers(cls, value: SecretStr) -> SecretStr:
        if value.get_secret_value().strip():
            parse_providers(value.get_secret_value())
        return value

    @field_validator("llm_providers_file")
    @classmethod
    def _holds_providers(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value is not None:
            if info.data.get("llm_providers", SecretStr("")).get_secret_value().strip():
                raise ValueError("the providers themselves are set as well; set one of the two")
            _providers_of(value)
        return value

    @field_validator("llm_operations")
    @classmethod
    def _ask_known_models(cls, value: str, info: ValidationInfo) -> str:
        if info.data.keys() >= _SETTINGS_OF_MODELS:  # else they are what is wrong
            _catalog(info.data, value)
        return value

    @field_validator("llm_sampling")
    @classmethod
    def _is_sampling(cls, value: str) -> str:
        if value.strip():
            parse_sampling(value)
        return value

    @field_validator("egress_allowed_networks")
    @classmethod
    def _are_networks(cls, value: str) -> str:
        parse_networks(value)
        return value

    @property
    def approval_life_s(self) -> float:
        """Seconds for which a question to a person stands: a run must not outlive its log while it waits."""
        return min(self.approval_expiry_s, self.run_retention_days * 86_400.0 / 2)

    def measured_judges(self) -> Mapping[str, CheckedBy]:
        """The models whose error as a judge was measured."""
        return _judges_of(self.verify_figures_file) if self.verify_figures_file else {}

    def model_catalog(self) -> Catalog | None:
        """All providers and what each operation asks; None where there is no model."""
        prices = (self.llm_prompt_usd_per_million_tokens, self.llm_completion_usd_per_million_tokens)
        catalog = _catalog(dict(self), self.llm_operations, *prices)
        sampling = parse_sampling(self.llm_sampling) if self.llm_sampling.strip() else {}
        return catalog and replace(catalog, sampling=sampling)


_SETTINGS_OF_MODELS = {
    "llm_base_url",
    "llm_context_tokens",
    "llm_local",
    "llm_preset",
    "llm_providers",
    "llm_providers_file",
    "llm_tokenizer_file",
    "llm_tool_calls",
}


def _catalog(
    settings: Mapping[str, Any], operations_json: str, prompt_usd: float = 0.0, completion_usd: float = 0.0
) -> Catalog | None:
    """Raises ValueError where the providers do not have what the operations ask."""
    value, path = settings["llm_providers"].get_secret_value(), settings["llm_providers_file"]
    named = _providers_of(path) if path else parse_providers(value) if value.strip() else {}
    providers = dict(named)
    if settings["llm_base_url"]:
        if DEFAULT in providers:
            raise ValueError(f"provider {DEFAULT!r} is the one of GROUNDWORK_LLM_BASE_URL; give the other another name")
        spec = ModelSpec(
            context_tokens=settings["llm_context_tokens"],
            prompt_usd=prompt_usd,
            completion_usd=completion_usd,
            tool_calls=settings["llm_tool_calls"],
        )
        providers[DEFAULT] = Provider(
            base_url=settings["llm_base_url"],
            preset=settings["llm_preset"],
            tokenizer_file=settings["llm_tokenizer_file"],
            api_key=settings["llm_api_key"],
            models={settings["llm_model"]: spec},
            local=settings["llm_local"],
            any_model=True,
        )
    if not providers:
        if operations_json.strip():
            raise ValueError("there is no provider; set GROUNDWORK_LLM_PROVIDERS")
        return None
    return make_catalog(providers, operations_json)


def _judges_of(path: Path) -> Mapping[str, CheckedBy]:
    try:
        return measured_judges(path.read_text("utf-8"))
    except OSError as error:
        raise ValueError(f"it cannot be read ({error.strerror})") from None


def _providers_of(path: Path) -> Mapping[str, Provider]:
    try:
        return parse_providers(path.read_text("utf-8"))
    except OSError as error:
        raise ValueError(f"it cannot be read ({error.strerror})") from None
