"""Asks HTTP servers for tools: only hosts that the operator has listed, at addresses that kit.network.egress permits, with bounds
on size and time. A redirect is judged like the first address."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import httpx

from kit.errors import GroundworkError
from kit.network.egress import EgressGuard, Place, UrlRefused, parse_networks, place_of
from kit.network.guarded_http import guarded_transport
from services.tools.errors import CallInDoubt, ToolError
from services.tools.outside.hosts import parse_host_patterns
from services.tools.settings import ToolsSettings

URL_CHARACTERS_MAX = 2_000
BODY_BYTES_MAX = 1024 * 1024
TEXT_CHARACTERS_MAX = 40_000
"""Of an answer's text that a tool passes on: some ten thousand tokens, all that a model reads of one observation."""
REDIRECTS_MAX = 3
ANSWER_TIMEOUT_S = 8.0
"""Until the answer begins, redirects included."""
BODY_TIMEOUT_S = 4.0
"""For the rest of it; what has come until then is used."""
TIMEOUT_S = ANSWER_TIMEOUT_S + BODY_TIMEOUT_S + 3.0
"""Of a tool that asks once: longer than both, so that this module says how a call ended."""
_TEXT_TYPES = ("application/json", "application/xml", "application/x-ndjson")
_REDIRECTS = {301, 302, 303, 307, 308}
_HIDDEN = "[hidden]"


class HttpFailed(ToolError):
    """No answer, and for certain nothing was done."""

    reason = "HTTP_FAILED"


@dataclass(frozen=True)
class Request:
    """What is asked for."""

    method: str
    url: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """What the server said. `text` is None when the body is not text."""

    url: str
    status: int
    content_type: str
    text: str | None
    is_truncated: bool
    location: str = ""

    def content(self) -> dict[str, Any]:
        """For the model."""
        content: dict[str, Any] = {
            "url": self.url,
            "status": self.status,
            "content_type": self.content_type,
            "text": self.text,
        }
        if self.is_truncated:
            content["truncated"] = True
        if self.location:
            content["location"] = self.location
        if self.text is None:
            content["note"] = "the answer is not text and was left out"
        return content

    def summary(self) -> str:
        """For the person."""
        return f"{httpx.URL(self.url).host} answered with {self.status}"


def is_set_up(settings: ToolsSettings) -> bool:
    """Whether the operator has listed a host."""
    return bool(settings.tools_http_hosts)


async def ask(request: Request, settings: ToolsSettings, *, follow: bool, repeatable: bool) -> Answer:
    """The server's answer, of any status. `follow` goes after redirects.

    Raises HttpFailed, and CallInDoubt when the request was sent, is not `repeatable`, and nothing came back.
    """
    sent = Sent()
    try:
        async with _client(settings) as client:
            return await _answer(client, request, settings, follow, sent)
    except GroundworkError as error:  # of the guard, before anything is sent
        raise HttpFailed(error.message, reason=error.reason) from error
    except (httpx.TransportError, TimeoutError) as error:
        why = str(error) or "no answer in time"
        if sent.began and not repeatable:
            raise CallInDoubt(
                f"the request was sent and no answer came ({why}): it may have been carried out. It is not sent again; look at the "
                "other system whether it was, before anybody sends it anew"
            ) from error
        raise HttpFailed(f"{_host(request.url)} cannot be asked: {why}") from error


class Sent:
    """Notices when a request leaves: from then on the server may act on it."""

    began = False

    async def trace(self, event: str, _: object) -> None:
        if event.endswith("send_request_headers.started"):
            self.began = True


@asynccontextmanager
async def _client(settings: ToolsSettings) -> AsyncIterator[httpx.AsyncClient]:
    guard = _guard(settings.egress_allowed_networks)
    transport = await asyncio.to_thread(guarded_transport, guard)  # it reads certificates
    # Not compressed: a small answer could unfold to gigabytes.
    headers = {"User-Agent": "groundwork", "Accept": "application/json, text/*;q=0.9", "Accept-Encoding": "identity"}
    async with httpx.AsyncClient(
        transport=transport, headers=headers, timeout=ANSWER_TIMEOUT_S, trust_env=False
    ) as client:
        yield client


@lru_cache(maxsize=2)
def _guard(networks: str) -> EgressGuard:
    """One for all calls: it has threads that look up names."""
    return EgressGuard(parse_networks(networks))


async def _answer(
    client: httpx.AsyncClient, request: Request, settings: ToolsSettings, follow: bool, sent: Sent
) -> Answer:
    async with asyncio.timeout(ANSWER_TIMEOUT_S) as until_it_begins:
        for _ in range(REDIRECTS_MAX + 1):
            secrets = _secrets(_permitted(request.url, settings), settings)
            asked = client.build_request(
                request.method, request.url, content=request.body or None, headers={**request.headers, **secrets}
            )
            asked.extensions["trace"] = sent.trace
            response = await client.send(asked, stream=True)
            try:
                location = location_of(response)
                if not (follow and location):
                    until_it_begins.reschedule(asyncio.get_running_loop().time() + BODY_TIMEOUT_S + 1.0)
                    return _hidden(await _read(response, location), secrets)
            finally:
                await response.aclose()
            request = replace(request, url=location)
    raise HttpFailed(f"{_host(request.url)}: more than {REDIRECTS_MAX} redirects", reason="TOO_MANY_REDIRECTS")


def _permitted(url: str, settings: ToolsSettings) -> Place:
    """Where the URL leads, if the operator has listed that."""
    place = plain_place(url)
    if not any(pattern.matches(place) for pattern in parse_host_patterns(settings.tools_http_hosts)):
        raise HttpFailed(
            f"{place.scheme}://{place.host}:{place.port} is not a host that may be asked; these may: "
            f"{', '.join(settings.tools_http_hosts) or 'none'}",
            reason="HOST_NOT_ALLOWED",
        )
    return place


def plain_place(url: str) -> Place:
    """Where a URL leads, if all readers of it agree. Raises UrlRefused."""
    place = place_of(url)
    try:
        host = httpx.URL(url).raw_host.decode().lower()
    except (httpx.InvalidURL, UnicodeError) as error:
        raise UrlRefused(f"the URL cannot be read ({error})") from error
    if host != place.host.lower():  # two readings of one URL: the one that is judged must be the one that is asked
        raise UrlRefused("the URL's host must be written plainly, as in https://api.example.com/v1")
    return place


def _secrets(place: Place, settings: ToolsSettings) -> dict[str, str]:
    return {
        header: secret.get_secret_value()
        for name, headers in settings.tools_http_headers.items()
        if parse_host_patterns([name])[0].matches(place)
        for header, secret in headers.items()
    }


def location_of(response: httpx.Response) -> str:
    """Where a redirect leads; empty where the answer is none. `response.request` must be set."""
    if response.status_code not in _REDIRECTS or "location" not in response.headers:
        return ""
    try:
        return str(response.url.join(response.headers["location"]).copy_with(fragment=None))
    except httpx.InvalidURL:  # returned as it is; it will not be followed
        return str(response.headers["location"])


async def _read(response: httpx.Response, location: str) -> Answer:
    content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    text, is_truncated = None, False
    if not content_type or _is_text(content_type, response.headers.get("content-encoding", "")):
        body, is_truncated = await _body(response)
        text = _decoded(body, response.charset_encoding)
        is_truncated = is_truncated or len(text) > TEXT_CHARACTERS_MAX
        text = text[:TEXT_CHARACTERS_MAX]
    return Answer(str(response.url), response.status_code, content_type, text, is_truncated, location)


def _is_text(content_type: str, encoding: str) -> bool:
    if encoding.lower() not in {"", "identity"}:
        return False
    return content_type.startswith("text/") or content_type in _TEXT_TYPES or content_type.endswith(("+json", "+xml"))


async def _body(response: httpx.Response) -> tuple[bytes, bool]:
    """The body, and whether there is more of it. What was asked is done once an answer began, so a broken end is no failure."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > BODY_BYTES_MAX:
                    return bytes(body[:BODY_BYTES_MAX]), True
    except (httpx.TransportError, TimeoutError):
        return bytes(body), True
    return bytes(body), False


def _decoded(body: bytes, charset: str | None) -> str:
    try:
        return body.decode(charset or "utf-8", errors="replace")
    except LookupError:
        return body.decode(errors="replace")


def _hidden(answer: Answer, secrets: Mapping[str, str]) -> Answer:
    """Without what the operator's headers hold, should the server repeat it."""
    text, location = answer.text, answer.location
    values = list(secrets.values())
    for secret in [*values, *(value.split()[-1] for value in values)]:  # "Bearer x" as a whole, and x
        text, location = text and text.replace(secret, _HIDDEN), location.replace(secret, _HIDDEN)
    return replace(answer, text=text, location=location)


def _host(url: str) -> str:
    return httpx.URL(url).host
