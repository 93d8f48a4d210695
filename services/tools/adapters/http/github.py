"""Asks GitHub for tools, by connections: at addresses that kit.network.egress permits, with bounds on size and time. The limits of
GitHub are obeyed: a connection at its limit is not used until GitHub allows it."""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

import httpx
from pydantic import SecretStr

from kit.errors import GroundworkError
from kit.network.egress import EgressGuard
from kit.network.guarded_http import guarded_transport
from services.tools.adapters.http.http_servers import Sent, location_of, plain_place
from services.tools.connections.github import Asked, CredentialRefused, GithubFailed
from services.tools.connections.records import Connection
from services.tools.connections.windows import ConnectionWindows
from services.tools.errors import CallInDoubt, ServiceUnavailable, ToolError
from services.tools.web.pages import WebBusy

_ANSWER_TIMEOUT_S = 8.0
_BODY_BYTES_MAX = 8 * 1024 * 1024
"""A file comes in base64, in one piece up to 1 MB; the longest page of comments is smaller."""
_REDIRECTS_MAX = 2
_SAID_CHARACTERS = 300
_SECONDARY_LIMIT_S = 60.0
"""GitHub asks for a minute where it says no more (secondary rate limits)."""


class GithubClient:
    """GitHub for all callers of this process. `close` it."""

    def __init__(self, guard: EgressGuard, address: str) -> None:
        """`address` of its API: https://api.github.com, or of an own server https://github.example.com/api/v3."""
        self.address = address.rstrip("/")
        self._guard = guard
        self._transport: httpx.AsyncBaseTransport | None = None
        self._windows = ConnectionWindows()

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()

    async def account(self, secret: SecretStr) -> str:
        """As whom GitHub knows the holder of a token. Raises ToolError."""
        asked = Asked("/user")
        status, headers, data = await self._sent(asked, secret)
        if status == 200 and isinstance(data, dict) and data.get("login"):
            return str(data["login"])[:100]
        raise _refusal(asked, status, headers, data)

    async def ask(self, asked: Asked, connection: Connection, *, tenant_id: str, run: str) -> Any:
        windows = self._windows.of(tenant_id, connection)
        windows.take("GitHub", run)
        status, headers, data = await self._sent(asked, connection.secret)
        if 200 <= status < 300:
            return data
        if (wait_s := _limited_s(status, headers, data)) is not None:
            windows.leave_alone("GitHub", wait_s)
        raise _refusal(asked, status, headers, data)

    async def _sent(self, asked: Asked, secret: SecretStr) -> tuple[int, Mapping[str, str], Any]:
        sent = Sent()
        try:
            async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                return await self._answer(asked, secret, sent)
        except GroundworkError as error:  # of the guard, before anything is sent
            raise ServiceUnavailable(error.message, reason=error.reason) from error
        except (httpx.TransportError, TimeoutError) as error:
            if sent.began and asked.body is not None:
                raise _in_doubt(str(error) or "no answer in time") from error
            raise ServiceUnavailable(
                f"GitHub does not answer ({str(error) or 'not in time'}); try again later"
            ) from error

    async def _answer(self, asked: Asked, secret: SecretStr, sent: Sent) -> tuple[int, Mapping[str, str], Any]:
        if self._transport is None:
            self._transport = await asyncio.to_thread(guarded_transport, self._guard)  # it reads certificates
        url = str(httpx.URL(f"{self.address}{asked.path}", params=dict(asked.params) or None))
        for _ in range(_REDIRECTS_MAX + 1):
            request = _request(asked, url, secret, sent)
            response = await self._transport.handle_async_request(request)
            response.request = request
            try:
                location = location_of(response)
                if not location or plain_place(location) != plain_place(url) or not _keeps(asked, response.status_code):
                    return response.status_code, response.headers, await _json(response)
            finally:
                await response.aclose()
            url = location
        raise GithubFailed("GitHub leads on and on; name the repository as it is called now")


def _request(asked: Asked, url: str, secret: SecretStr, sent: Sent) -> httpx.Request:
    headers = {
        "Accept": asked.accept,
        "Accept-Encoding": "identity",
        "Authorization": f"Bearer {secret.get_secret_value()}",
        "User-Agent": "groundwork",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    timeout = httpx.Timeout(_ANSWER_TIMEOUT_S).as_dict()
    method, body = ("GET", None) if asked.body is None else ("POST", dict(asked.body))
    extensions = {"timeout": timeout, "trace": sent.trace}
    # A transport, not a client of httpx: that would keep cookies of one user for another.
    return httpx.Request(method, url, headers=headers, json=body, extensions=extensions)


def _keeps(asked: Asked, status: int) -> bool:
    """Whether the same request may go to where a redirect leads: of a renamed repository."""
    return asked.body is None or status in (307, 308)


async def _json(response: httpx.Response) -> Any:
    """The body; an empty object where it is no JSON, as the pages of proxies are none. Raises GithubFailed."""
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > _BODY_BYTES_MAX:
            raise GithubFailed("GitHub's answer is too large; ask for less")
    try:
        return json.loads(body) if body else {}
    except (ValueError, RecursionError):
        return {}


def _limited_s(status: int, headers: Mapping[str, str], data: Any) -> float | None:
    """Seconds for which GitHub is not to be asked (its rate limits); None where it did not say so."""
    if status not in (403, 429):
        return None
    if (after := headers.get("retry-after", "")).isdecimal():
        return float(after)
    if headers.get("x-ratelimit-remaining") == "0":
        reset = headers.get("x-ratelimit-reset", "")
        return max(float(reset) - time.time(), 1.0) if reset.isdecimal() else _SECONDARY_LIMIT_S
    if status == 429 or "rate limit" in _message(data).lower():
        return _SECONDARY_LIMIT_S
    return None


_ADVICE = {
    401: "does not take the credential: it is mistyped, over or withdrawn; connect GitHub again with another one",
    403: "does not allow this to the connected account; tell the person which permission its token needs",
    404: "knows no such thing, or hides it from the connected account; check owner, name, path and number",
    410: "has it no more, or the repository has no issues",
    422: "cannot do that; mend what it says",
}


def _refusal(asked: Asked, status: int, headers: Mapping[str, str], data: Any) -> ToolError:
    if status >= 500:
        if asked.body is not None:
            return _in_doubt(f"it answered with {status}")
        return ServiceUnavailable(f"GitHub cannot do that now (it answered with {status}); try again later")
    if (wait_s := _limited_s(status, headers, data)) is not None:
        return WebBusy(f"GitHub was asked as often as it allows this account; try again in {max(1, round(wait_s))} s")
    said = _message(data)
    detail = f" ({said})" if said else ""
    failure = CredentialRefused if status == 401 else GithubFailed
    return failure(f"GitHub {_ADVICE.get(status, f'answered with {status}')}{detail}")


def _message(data: Any) -> str:
    """What GitHub says of a refusal, with the fields that it means."""
    if not isinstance(data, dict):
        return ""
    errors = data["errors"] if isinstance(data.get("errors"), list) else []
    fields = [_field(each) if isinstance(each, dict) else str(each) for each in errors]
    return " ".join("; ".join([str(data.get("message", "")), *fields]).split())[:_SAID_CHARACTERS]


def _field(error: Mapping[str, Any]) -> str:
    return str(error.get("message") or f"{error.get('field', '')} {error.get('code', '')}")


def _in_doubt(why: str) -> CallInDoubt:
    return CallInDoubt(
        f"it was sent to GitHub and nobody knows whether it was done ({why}). It is not sent again; look at the repository before "
        "anybody does it anew"
    )
