"""What an endpoint's refusal means, and which setting to look at. Every server words it differently; the words of each that we
know are in the tests."""

import email.utils
import re
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from kit.errors import GroundworkError
from kit.llm.endpoint.streaming.decoding import error_of, parsed
from kit.llm.endpoint.streaming.unicode import well_formed
from kit.llm.endpoint.tokens.windows import window_in_refusal
from kit.llm.errors import (
    CredentialsRefused,
    ModelRejected,
    ModelUnavailable,
    PromptTooLong,
    ToolsRefused,
    WrongEndpoint,
)

SHOWN_CHARACTERS = 200
_SHORTEST_KEY = 8
"""A shorter one is no secret, and may be a part of any word."""
_OVERFLOW = re.compile(
    r"context_length|context length|context window|context size|context limit|exceed_context_size|max_model_len"
    r"|prompt is too long|maximum prompt length|input token count.{0,40}exceeds|too many (?:input )?tokens",
    re.IGNORECASE,
)
_TOOLS_REFUSED = re.compile(
    r"enable-auto-tool-choice|tool-call-parser|requires --jinja|(?:not|n't) support(?:ed)? (?:tool|function)"
    r"|(?:tool|function)[\w\s`'-]{0,30}(?:is|are) not supported|support tool use",
    re.IGNORECASE,
)
"""vLLM and llama.cpp as started without support; Ollama, Groq and OpenRouter of models that have none."""
_UNKNOWN_FIELD = re.compile(
    r"unsupported|not supported|does not support|unrecogni[sz]ed|unknown|unexpected|not permitted|not allowed"
    r"|extra inputs?|invalid (?:field|parameter|argument)",
    re.IGNORECASE,
)
_OPTIONAL_FIELDS = (
    "stream_options",
    "temperature",
    "top_p",
    "seed",
    "stop",
    "max_completion_tokens",
    "max_tokens",
    "tool_choice",
)
"""Fields that a request can do without, or that have another name. A schema cannot be left out in silence."""
_PASSING = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.CONFLICT,
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
}
_CREDENTIALS = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}


class Failures:
    """Names the failures of one endpoint."""

    def __init__(self, model: str, setting: Callable[[str], str], secret: str) -> None:
        self._model = model
        self._setting = setting
        self._secret = secret

    def of_status(self, status: int, body: str, retry_after: str | None) -> GroundworkError:
        """The error for an answer other than 200."""
        said = _Said.read(body)
        if (rejected := self._rejected_by_words(status, said)) is not None:
            return rejected
        if status in _CREDENTIALS:
            return CredentialsRefused(
                f"model {self._model} was refused with HTTP {status}; check {self._setting('api_key')} and what it may use"
            )
        if "insufficient_quota" in said.text:
            return ModelRejected(f"the quota at the provider of model {self._model} is used up: raise it there")
        if status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return ModelUnavailable(
                f"model {self._model} answered with HTTP {status}{self._excerpt(said)}",
                retry_after_s=retry_after_s(retry_after),
            )
        if status in {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED} and "model" not in said.text.lower():
            return self.wrong_endpoint(f"it answered HTTP {status}")
        return ModelRejected(
            f"model {self._model} refused with HTTP {status}{self._excerpt(said)}; check {self._setting('model')}"
        )

    def _rejected_by_words(self, status: int, said: "_Said") -> ModelRejected | None:
        """What the words say, whatever the status: servers disagree about it."""
        if _OVERFLOW.search(said.text) and (status < HTTPStatus.INTERNAL_SERVER_ERROR or said.is_error):
            return self.too_long(said)
        if _TOOLS_REFUSED.search(said.text):
            return ToolsRefused(f"model {self._model} takes no tools{self._excerpt(said)}")
        return None

    def of_redirect(self, status: int) -> WrongEndpoint:
        return self.wrong_endpoint(f"it redirects (HTTP {status}), which is not followed with a key")

    def of_error_in_stream(self, error: Any) -> GroundworkError:
        """The error for a stream that says one in place of a piece of the answer."""
        said = _Said.of_error(error)
        if _OVERFLOW.search(said.text):
            return self.too_long(said)
        status = error.get("code") if isinstance(error, dict) else None
        if isinstance(status, int) and 400 <= status < 500:
            return self.of_status(status, said.text, None)
        return ModelUnavailable(f"model {self._model} broke off its answer{self._excerpt(said)}")

    def of_other_content(self, content_type: str, line: str) -> WrongEndpoint:
        """The error for an answer that is no event stream."""
        kind = content_type.partition(";")[0].strip() or "something"
        if line.lstrip().startswith("<"):
            kind = "a web page"
        elif line.lstrip().startswith(("{", "[")):
            kind = "plain JSON"
        return self.wrong_endpoint(f"it answered with {kind} instead of a stream")

    def wrong_endpoint(self, what: str) -> WrongEndpoint:
        return WrongEndpoint(
            f"what is at {self._setting('base_url')} is no chat API: {what}. The address of an OpenAI-compatible API usually "
            f"ends in /v1; check {self._setting('base_url')}"
        )

    def too_long(self, said: "_Said") -> PromptTooLong:
        error = PromptTooLong(
            f"the prompt does not fit the context of model {self._model}{self._excerpt(said)}; "
            f"check {self._setting('context_tokens')}"
        )
        error.context_tokens = window_in_refusal(said.message) or window_in_refusal(said.text)
        return error

    def bad_answer(self, what: str) -> ModelUnavailable:
        return ModelUnavailable(f"model {self._model} {what}", reason="LLM_BAD_ANSWER")

    def timeout(self, what: str) -> ModelUnavailable:
        return ModelUnavailable(f"model {self._model} {what}", reason="LLM_TIMEOUT")

    def unreachable(self, error: Exception) -> ModelUnavailable:
        return ModelUnavailable(
            f"model {self._model} cannot be reached or broke off its answer ({type(error).__name__}); "
            f"check {self._setting('base_url')} and that the server runs"
        )

    def _excerpt(self, said: "_Said") -> str:
        """What the server said, short, without the key."""
        text = " ".join(well_formed(said.message).split())
        if len(self._secret) >= _SHORTEST_KEY:
            text = text.replace(self._secret, "[key]")
        return f" ({text[:SHOWN_CHARACTERS]})" if text else ""


class _Said:
    """The message of an error, and all of its text for words to be found in."""

    def __init__(self, message: str, text: str, *, is_error: bool) -> None:
        self.message = message
        self.text = text
        self.is_error = is_error

    @classmethod
    def read(cls, body: str) -> "_Said":
        try:
            value = parsed(body)
        except ValueError:
            return cls("", body[:2000], is_error=False)
        error = error_of(value)
        return cls.of_error(error or value)

    @classmethod
    def of_error(cls, error: Any) -> "_Said":
        message = error.get("message") if isinstance(error, dict) else error
        return cls(message if isinstance(message, str) else "", str(error), is_error=True)


def refused_field(status: int, body: str, sent: dict[str, Any]) -> str | None:
    """The field that the server says it does not take, if the request can do without it."""
    if status not in {HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY} or _OVERFLOW.search(body):
        return None
    if not _UNKNOWN_FIELD.search(body):
        return None
    # "Unsupported parameter: 'max_tokens' … Use 'max_completion_tokens' instead": the first that it names is the one.
    named = min((name for name in _OPTIONAL_FIELDS if name in body), key=body.index, default=None)
    return named if named in sent else None


def retry_after_s(header: str | None) -> float | None:
    """Seconds that the server asks to wait: a number or a date (RFC 9110, 10.2.3)."""
    if header is None:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        at = email.utils.parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
