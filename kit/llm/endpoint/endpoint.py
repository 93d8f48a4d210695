"""One model at one OpenAI-compatible endpoint. httpx does HTTP; everything that an endpoint may do with it is judged here, because
a client library would follow redirects with the key, wait for what never ends, and call a web page an empty answer."""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import structlog
from opentelemetry.trace import Span, SpanKind

from kit.errors import GroundworkError
from kit.llm.endpoint.bounds import Account, Clock, OutOfTime
from kit.llm.endpoint.encoding import encode
from kit.llm.endpoint.failures import Failures, refused_field
from kit.llm.endpoint.knowledge import Knowledge
from kit.llm.endpoint.presets import REASONING_TOKENS, Preset, preset_named, preset_of_address
from kit.llm.endpoint.streaming.decoding import Decoder
from kit.llm.endpoint.streaming.stream import chunks_of
from kit.llm.errors import ModelRejected, PromptTooLong
from kit.llm.messages import Delta, Finish, FinishReason, ModelInfo, Operation, Request, Spent
from kit.observability.telemetry import Attributes, begun_span, note_error

_log = structlog.get_logger()
_EPILOGUE_S = 2.0
"""Longest wait for the usage behind the end of an answer."""
_IDLE_S = 3.0
"""How long an idle connection is kept. uvicorn (vLLM) and llama.cpp close theirs after 5 s, and lose a request that is sent at that
moment."""
_LONGEST_ERROR_BYTES = 64 * 1024


def env_setting(field_name: str) -> str:
    """The environment variable of a field of the endpoint that has no name."""
    return f"GROUNDWORK_LLM_{field_name.upper()}"


@dataclass(frozen=True)
class EndpointConfig:
    """Where a model is and how to speak to it."""

    base_url: str
    """Up to and including /v1 (or what the provider has instead)."""

    model: str
    api_key: str = field(default="", repr=False)
    """Sent as a bearer token; empty sends none."""

    provider: str = ""
    """Name shown beside its answers. Empty: the preset's."""

    preset: str = ""
    """Name of a row of PRESETS. Empty: recognised by the address, then by what the server says."""

    context_tokens: int = 0
    """Tokens of prompt and answer together. 0: learnt, see `Knowledge`."""

    tokenizer_file: Path | None = None
    """A tokenizer.json, for servers that do not count tokens."""

    connect_timeout_s: float = 3.0
    stall_timeout_s: float = 30.0
    """Longest silence. A loaded GPU queues for seconds; half a minute of silence is an outage."""

    completion_timeout_s: float = 90.0
    """Longest completion. What the run can afford may be less."""

    setting: Callable[[str], str] = env_setting
    """What messages call the setting of a field: `base_url`, `api_key`, `model` or `context_tokens`."""


class Endpoint:
    """A LanguageModel that has one model for all operations, and makes one attempt. Open it with `open_endpoint`."""

    def __init__(
        self, client: httpx.AsyncClient, config: EndpointConfig, new_id: Callable[[], str] = lambda: uuid.uuid4().hex
    ) -> None:
        self._client = client
        self._config = config
        self._base_url = base_url_of(config.base_url)
        preset = preset_named(config.preset) if config.preset else preset_of_address(config.base_url)
        self._knowledge = Knowledge(
            client,
            self._base_url,
            config.model,
            preset,
            context_tokens=config.context_tokens,
            tokenizer_file=config.tokenizer_file,
        )
        named = f"{config.provider}/{config.model}" if config.provider else config.model
        self._failures = Failures(named, config.setting, config.api_key)
        self._new_id = new_id
        self._refused_fields: frozenset[str] = frozenset()
        self._starts_thinking = False

    @property
    def preset(self) -> Preset:
        return self._knowledge.preset

    def info(self, operation: Operation = Operation.ANSWER) -> ModelInfo:  # noqa: ARG002 - it has one model for all
        thinks = self.preset.thinking_models.search(self._config.model) is not None
        return ModelInfo(
            self._provider, self._config.model, self._knowledge.context_tokens, REASONING_TOKENS if thinks else 0
        )

    async def count_tokens(
        self,
        texts: Sequence[str],
        operation: Operation = Operation.ANSWER,  # noqa: ARG002
    ) -> Sequence[int]:
        """Tokens of each text, or an estimate from above. Never fails."""
        return await self._knowledge.count_tokens(texts)

    async def complete(self, request: Request) -> AsyncGenerator[Delta, None]:
        """See LanguageModel. Raises ModelUnavailable, ModelRejected or one of its kinds."""
        account = Account(request)
        # Not the current span: a generator's steps may run in several contexts. Names are those of OpenTelemetry for generative AI.
        span = begun_span(f"chat {self._config.model}", self._attributes(request), SpanKind.CLIENT)
        try:
            async with aclosing(self._deltas(request, account)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, Finish):
                        span.set_attribute("gen_ai.response.finish_reasons", (delta.reason.value,))
                    yield delta
        except GroundworkError as error:
            if isinstance(error, PromptTooLong):
                self._knowledge.learn(error.context_tokens)
            note_error(span, error)
            raise
        except Exception as error:  # a run must not fail of what an endpoint sends
            note_error(span, error)
            _log.exception("model_answer_unreadable", model=self._config.model)
            raise self._failures.bad_answer("sent something that cannot be read") from error
        finally:
            self._settle(request, account, span)

    def _attributes(self, request: Request) -> Attributes:
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self._provider,
            "gen_ai.request.model": self._config.model,
            "gen_ai.request.max_tokens": request.max_tokens,
            "gen_ai.request.temperature": request.temperature,
            "groundwork.llm.operation": request.operation.value,
        }

    def _settle(self, request: Request, account: Account, span: Span) -> None:
        usage = account.usage
        if request.meter is not None:
            request.meter.add(Spent(self._provider, self._config.model, usage))
        span.set_attribute("gen_ai.usage.input_tokens", usage.prompt_tokens)
        span.set_attribute("gen_ai.usage.output_tokens", usage.completion_tokens)
        span.end()

    async def _deltas(self, request: Request, account: Account) -> AsyncGenerator[Delta, None]:
        clock = Clock(total_s=self._config.completion_timeout_s, stall_s=self._config.stall_timeout_s)
        decoder = Decoder(with_tools=bool(request.tools), starts_thinking=self._starts_thinking, new_id=self._new_id)
        reason: FinishReason | None = None

        async def wait(next_bytes: Awaitable[bytes | None]) -> bytes | None:
            if decoder.has_ended:
                return await clock.wait_for(next_bytes, at_most_s=_EPILOGUE_S)
            return await clock.wait_for(next_bytes, patient=self._is_patient and not account.has_received)

        try:
            async with (
                self._opened(request, account, clock) as response,
                aclosing(chunks_of(response, self._failures, wait)) as chunks,
            ):
                async for chunk in chunks:
                    deltas = list(decoder.feed(chunk))
                    account.note_chunk(is_empty=not deltas)
                    account.said = decoder.usage
                    for delta in deltas:
                        yield account.admit(delta)
                    if account.is_overdrawn:
                        reason = FinishReason.CUT_OFF
                        break
        except (OutOfTime, httpx.HTTPError, httpx.StreamError, httpx.InvalidURL) as error:
            reason = self._reason_of(error, decoder, account, clock)
        for delta in decoder.finish():
            yield account.admit(delta)
        self._starts_thinking = decoder.closed_unopened
        yield self._finish(reason or decoder.reason, account)

    def _reason_of(self, error: Exception, decoder: Decoder, account: Account, clock: Clock) -> FinishReason:
        """Why the completion ends where its stream broke. Raises ModelUnavailable when it is to be given up as a whole."""
        if decoder.has_ended:
            return decoder.reason
        if not isinstance(error, OutOfTime):
            raise self._failures.unreachable(error) from error
        if error.stalled or not account.has_received:
            late = "fell silent" if error.stalled else f"did not answer within {clock.total_s:.1f} s"
            raise self._failures.timeout(late) from error
        return FinishReason.CUT_OFF

    def _finish(self, reason: FinishReason, account: Account) -> Finish:
        if reason is FinishReason.INCOMPLETE and not account.has_received:
            raise self._failures.bad_answer("ended its answer before it had begun")
        if reason.is_whole and not account.has_answered:
            raise self._failures.bad_answer("finished without an answer")
        return Finish(reason, account.usage, self._provider, self._config.model)

    @property
    def _provider(self) -> str:
        return self._config.provider or self.preset.name

    @asynccontextmanager
    async def _opened(self, request: Request, account: Account, clock: Clock) -> AsyncIterator[httpx.Response]:
        """The answer with status 200. A request that is refused for a field it can do without is sent again without it, and
        so are all later ones."""
        while True:
            body = encode(request, self._config.model, self.preset, self._refused_fields)
            response = await self._send(body, account, clock)
            try:
                if response.status_code == httpx.codes.OK:
                    yield response
                    return
                account.was_sent = False
                await self._judge(response, body, clock)
            finally:
                await response.aclose()

    async def _send(self, body: dict[str, Any], account: Account, clock: Clock) -> httpx.Response:
        message = self._client.build_request(
            "POST", f"{self._base_url}/chat/completions", content=json.dumps(body).encode()
        )
        account.was_sent = True
        try:
            return await clock.wait_for(self._client.send(message, stream=True), patient=self._is_patient)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.InvalidURL, httpx.UnsupportedProtocol):
            account.was_sent = False
            raise

    @property
    def _is_patient(self) -> bool:
        """Whether it may be silent before its first word: thoughts that are not shown take minutes."""
        return self.preset.thinking_models.search(self._config.model) is not None

    async def _judge(self, response: httpx.Response, body: dict[str, Any], clock: Clock) -> None:
        """Raises what the refusal means; returns when the request may be sent again without a field."""
        status = response.status_code
        if response.is_redirect or 300 <= status < 400:
            raise self._failures.of_redirect(status)
        text = await clock.wait_for(_beginning(response))
        field_name = refused_field(status, text, body)
        if field_name is None or field_name in self._refused_fields:
            raise self._failures.of_status(status, text, response.headers.get("retry-after"))
        self._refused_fields |= {field_name}


@asynccontextmanager
async def open_endpoint(
    config: EndpointConfig, transport: httpx.AsyncBaseTransport | None = None
) -> AsyncIterator[Endpoint]:
    """The endpoint, with connections of its own; `transport` stands in for them. Raises ModelRejected for a configuration that no
    endpoint could have."""
    headers = {"accept": "text/event-stream, application/json", "accept-encoding": "identity"}
    if config.api_key:
        if not config.api_key.isascii() or not config.api_key.isprintable():
            raise ModelRejected(
                f"the model's key holds characters that no key has; check {config.setting('api_key')} for a stray line or quote"
            )
        headers["authorization"] = f"Bearer {config.api_key}"

    def client() -> httpx.AsyncClient:  # reads the certificates of the system: in a thread
        return httpx.AsyncClient(
            headers={**headers, "user-agent": "groundwork", "content-type": "application/json"},
            timeout=httpx.Timeout(None, connect=config.connect_timeout_s),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=32, keepalive_expiry=_IDLE_S),
            follow_redirects=False,
            transport=transport,
        )

    async with await asyncio.to_thread(client) as opened:
        yield Endpoint(opened, config)


def base_url_of(text: str) -> str:
    """The base URL as it is used: also of the address of the method itself."""
    return text.strip().rstrip("/").removesuffix("/chat/completions").rstrip("/")


async def _beginning(response: httpx.Response) -> str:
    """The first part of a body."""
    body = bytearray()
    async for block in response.aiter_bytes():
        body += block
        if len(body) > _LONGEST_ERROR_BYTES:
            break
    return body.decode(errors="replace")
