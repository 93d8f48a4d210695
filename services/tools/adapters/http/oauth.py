"""Token endpoints of services that are connected by OAuth: renewal (RFC 6749), logins of devices (RFC 8628), and assertions of
service accounts (RFC 7523). They are asked at addresses that kit.network.egress permits; no redirect is followed."""

import asyncio
import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import anyio.to_process
import httpx
import jwt
from cryptography.exceptions import UnsupportedAlgorithm

from kit.errors import GroundworkError
from kit.network.egress import EgressGuard
from kit.network.guarded_http import guarded_transport
from services.tools.connections.device_login import LASTS_S_MAX, AskedDevice, Begun, OAuthServer, Polled
from services.tools.connections.logins import login_of
from services.tools.errors import ServiceUnavailable
from services.tools.sources.logins import Login, LoginRefused

_TIMEOUT_S = 8.0
_SIGNING_TIMEOUT_S = 15.0
_BODY_BYTES_MAX = 64 * 1024
_SAID_CHARACTERS = 200
_TOKEN = re.compile(r"[\x21-\x7e]{1,8000}")
"""Without spaces: the error of a header that cannot be sent would quote it."""
_DEVICE_CODE = re.compile(r"[\x21-\x7e]{1,1500}")
_USER_CODE = re.compile(r"[\x20-\x7e]{1,100}")
_PAGE = re.compile(r"https://[\x21-\x7e]{1,500}")
_ASSERTION_LASTS_S = 3600
_ASSERTION = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_SECONDS_MAX = 10 * 366 * 86_400.0
_DEVICE = "urn:ietf:params:oauth:grant-type:device_code"


class OAuthClient:
    """The client of one service's authorization server."""

    def __init__(self, guard: EgressGuard, server: OAuthServer, now: Callable[[], datetime]) -> None:
        self._guard, self._server, self._now = guard, server, now

    async def refresh(self, url: str, login: Login) -> Login:  # noqa: ARG002 - the server is known
        """The login with another access token. Raises LoginRefused and ServiceUnavailable."""
        if "private_key" in login.client:
            form = {"grant_type": _ASSERTION, "assertion": await self._assertion(login.client)}
        elif "refresh_token" in login.tokens:
            renewing = str(login.tokens["refresh_token"])
            form = {"grant_type": "refresh_token", "refresh_token": renewing, **self._client(login.client)}
        else:
            raise LoginRefused("its access token has expired, and the service gave none to renew it with")
        status, data = await self._post(self._server.token_url, form)
        if status != 200 or "error" in data:  # GitHub answers 200 with an error
            raise LoginRefused(_said(status, data))
        return self._login(login.client, {**login.tokens, **_tokens(data)}, data)

    async def revoke(self, url: str, login: Login) -> None:
        """Nothing: a person withdraws a login at the service, for others may use the same."""

    async def begin(self, asked: AskedDevice) -> Begun:
        """Asks for the code that a person types at the service. Raises LoginRefused and ServiceUnavailable."""
        form = {"client_id": self._server.client_id, **({"scope": asked.scope} if asked.scope else {})}
        status, data = await self._post(self._server.device_url, form)
        if status != 200 or "error" in data:
            raise LoginRefused(_said(status, data))
        device_code, user_code = data.get("device_code"), data.get("user_code")
        page = data.get("verification_uri") or data.get("verification_url")  # Google has a name of its own
        lasts_s, every_s = _seconds(data.get("expires_in")), _seconds(data.get("interval"))
        said = ((_DEVICE_CODE, device_code), (_USER_CODE, user_code), (_PAGE, page))
        if not lasts_s or not all(isinstance(each, str) and shape.fullmatch(each) for shape, each in said):
            raise LoginRefused("the server that logs in gave no usable code; see that its address is right")
        return Begun(str(device_code), str(user_code), str(page), min(lasts_s, LASTS_S_MAX), every_s or 5.0)

    async def poll(self, device_code: str) -> Polled:
        """Asks once whether the person has agreed. Raises LoginRefused where that cannot happen any more."""
        form = {"grant_type": _DEVICE, "device_code": device_code, **self._client({})}
        status, data = await self._post(self._server.token_url, form)
        match data.get("error"):
            case None if status == 200 and data.get("access_token"):
                return Polled(login=self._login({}, _tokens(data), data))
            case "authorization_pending":
                return Polled()
            case "slow_down":
                return Polled(is_too_fast=True)
            case "access_denied":
                raise LoginRefused("the person has refused it at the service")
            case "expired_token":
                raise LoginRefused("the code was not typed in time; begin again")
        raise LoginRefused(_said(status, data))

    def _login(self, client: Mapping[str, Any], tokens: Mapping[str, Any], data: Mapping[str, Any]) -> Login:
        lasts_s = _seconds(data.get("expires_in"))
        return login_of(client, tokens, self._now().timestamp() + lasts_s if lasts_s else 0.0)

    def _client(self, own: Mapping[str, Any]) -> dict[str, str]:
        """The client of the login, else the operator's."""
        if own:
            return {name: str(value) for name, value in own.items()}
        secret = self._server.client_secret.get_secret_value()
        return {"client_id": self._server.client_id, **({"client_secret": secret} if secret else {})}

    async def _assertion(self, account: Mapping[str, Any]) -> str:
        now = int(self._now().timestamp())
        claims = {
            "iss": account["client_email"],
            "scope": self._server.account_scope,
            "aud": self._server.token_url,
            "iat": now,
            "exp": now + _ASSERTION_LASTS_S,
        }
        try:
            async with asyncio.timeout(_SIGNING_TIMEOUT_S):
                # A long key is checked for a second, which would stop every thread of this process.
                signed = await anyio.to_process.run_sync(_sign, claims, account["private_key"], cancellable=True)
        except (TimeoutError, anyio.BrokenWorkerProcess) as error:
            raise ServiceUnavailable("its private key was not used in time; try again in a minute") from error
        if not signed:
            raise LoginRefused("its private key cannot be read; take the file as Google made it")
        return signed

    async def _post(self, url: str, form: Mapping[str, str]) -> tuple[int, Mapping[str, Any]]:
        """Status and object. Raises ServiceUnavailable where it does not answer, or fails."""
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "groundwork"}
        timeout = httpx.Timeout(_TIMEOUT_S).as_dict()
        request = httpx.Request("POST", url, headers=headers, data=dict(form), extensions={"timeout": timeout})
        try:
            async with (
                asyncio.timeout(_TIMEOUT_S),
                await asyncio.to_thread(guarded_transport, self._guard) as transport,  # it reads certificates
            ):
                response = await transport.handle_async_request(request)
                try:
                    status, data = response.status_code, await _json(response)
                finally:
                    await response.aclose()
        except GroundworkError as error:
            raise ServiceUnavailable(error.message, reason=error.reason) from error
        except (httpx.TransportError, TimeoutError) as error:
            raise ServiceUnavailable(
                f"the server that logs in does not answer ({str(error) or 'not in time'}); try again in a minute"
            ) from error
        if status >= 500 or status == 429:
            raise ServiceUnavailable(f"the server that logs in answers {status}; try again in a minute")
        return status, data


def _sign(claims: Mapping[str, Any], private_key: str) -> str:
    """The assertion; empty where the key cannot sign."""
    try:
        return jwt.encode(dict(claims), private_key, algorithm="RS256")
    except (ValueError, TypeError, AttributeError, UnsupportedAlgorithm, jwt.PyJWTError):
        return ""


async def _json(response: httpx.Response) -> Mapping[str, Any]:
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > _BODY_BYTES_MAX:
            return {}
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _tokens(data: Mapping[str, Any]) -> dict[str, str]:
    """The tokens of an answer. The refresh token may be missing: then the old one stays good. Raises LoginRefused."""
    found = {name: data[name] for name in ("access_token", "refresh_token") if data.get(name)}
    if "access_token" not in found or not all(_is_token(each) for each in found.values()):
        raise LoginRefused("the server that logs in gave no usable token; see that its address is right")
    return found


def _is_token(value: object) -> bool:
    return isinstance(value, str) and _TOKEN.fullmatch(value) is not None


def _seconds(said: object) -> float:
    """A time that an answer names, as a number or in words; 0 for what is none."""
    try:
        seconds = float(said) if isinstance(said, int | float | str) else 0.0
    except (ValueError, OverflowError):
        return 0.0
    return min(seconds, _SECONDS_MAX) if math.isfinite(seconds) and seconds > 0.0 else 0.0


def _said(status: int, data: Mapping[str, Any]) -> str:
    said = " ".join(str(data.get("error_description") or data.get("error") or "").split())
    return f"the server that logs in refuses it ({said[:_SAID_CHARACTERS] or status})"
