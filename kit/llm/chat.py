"""The language model: any OpenAI-compatible chat endpoint, streamed. The client library does the wire; this module fixes what
Groundwork needs of it: deadlines at each wait, our errors, usage, and nothing imported until a model is configured."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from kit.errors import GroundworkError
from kit.llm.errors import ModelRejected, ModelUnavailable
from kit.llm.messages import ChatMessage, TokenUsage


class ChatModel:
    """One model at one endpoint."""

    def __init__(self, client: Any, model: str) -> None:
        self._client = client
        self.name = model

    async def stream(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, temperature: float = 0.0
    ) -> AsyncIterator[str | TokenUsage]:
        """Pieces of the answer as they come, then one TokenUsage.

        Closing the iterator closes the connection, which stops the endpoint's work. Raises ModelUnavailable or
        ModelRejected, possibly after some pieces.
        """
        usage = TokenUsage()
        # Not the current span: a generator's steps may run in several contexts. Names are those of OpenTelemetry for generative AI.
        span = trace.get_tracer("groundwork").start_span(f"chat {self.name}", kind=SpanKind.CLIENT)
        span.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": self.name})
        try:
            stream = await self._client.chat.completions.create(
                model=self.name,
                messages=[{"role": message.role, "content": message.content} for message in messages],
                max_tokens=max_tokens,
                temperature=temperature,
                stream=True,
                stream_options={"include_usage": True},
            )
            async with stream:
                async for chunk in stream:
                    if chunk.usage:
                        usage = TokenUsage(chunk.usage.prompt_tokens, chunk.usage.completion_tokens)
                    if chunk.choices and chunk.choices[0].delta.content:
                        yield chunk.choices[0].delta.content
        except Exception as error:
            translated = _translated(error, self.name)
            span.set_status(StatusCode.ERROR, translated.reason)
            raise translated from error
        finally:
            span.set_attribute("gen_ai.usage.input_tokens", usage.prompt_tokens)
            span.set_attribute("gen_ai.usage.output_tokens", usage.completion_tokens)
            span.end()
        yield usage


@asynccontextmanager
async def open_chat_model(
    base_url: str,
    api_key: str,
    model: str,
    *,
    connect_timeout_s: float = 3.0,
    stall_timeout_s: float = 30.0,
    http_client: Any = None,
) -> AsyncIterator[ChatModel]:
    """A model at `base_url` (ending in /v1). No wait for the next piece is longer than `stall_timeout_s`."""
    import openai  # noqa: PLC0415 - a process without a model need not load half a second of client

    timeout = openai.Timeout(stall_timeout_s, connect=connect_timeout_s)
    async with openai.AsyncOpenAI(
        base_url=base_url, api_key=api_key or "none", timeout=timeout, max_retries=0, http_client=http_client
    ) as client:
        yield ChatModel(client, model)


def _translated(error: Exception, model: str) -> GroundworkError:
    import openai  # noqa: PLC0415

    match error:
        case openai.APITimeoutError():
            return ModelUnavailable(f"model {model} did not answer in time", reason="LLM_TIMEOUT")
        case openai.APIStatusError() if error.status_code in (408, 409, 425, 429) or error.status_code >= 500:
            return ModelUnavailable(
                f"model {model} answered with HTTP {error.status_code}",
                retry_after_s=_seconds(error.response.headers.get("retry-after", "")),
            )
        case openai.APIStatusError():
            return ModelRejected(
                f"model {model} was refused with HTTP {error.status_code}; check GROUNDWORK_LLM_MODEL and _API_KEY"
            )
        case openai.OpenAIError():
            return ModelUnavailable(
                f"model {model} cannot be reached or broke off its answer; check GROUNDWORK_LLM_BASE_URL"
            )
        case _:
            return ModelUnavailable(f"model {model} sent something that is not a completion", reason="LLM_BAD_ANSWER")


def _seconds(retry_after: str) -> float | None:
    return float(retry_after) if retry_after.isdigit() else None
