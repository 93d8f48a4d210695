"""Tokens with which Google's APIs are asked: of a service account, by a signed assertion (RFC 7523), or of a person, by the refresh
token that they gave (RFC 6749)."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping

import httpx
import jwt
from cryptography.exceptions import UnsupportedAlgorithm

from services.ingest.adapters.source_http import SourceHttp, secret_url
from services.ingest.adapters.sources._oauth_token import grant, refreshed
from services.ingest.errors import BadSource
from services.ingest.sources.ports import Opening

_SCOPE = "https://www.googleapis.com/auth/drive.readonly"
_ASSERTION = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_LASTS_S, _EARLY_S = 3600, 120
_PRIVATE_KEY_CHARS_MAX = 3_400
"""Of an RSA key of 4096 bits; Google's have 2048. One of 10,000 bits would hold the process for seconds."""
_PERSON = ("client_id", "client_secret", "refresh_token")


class GoogleToken:
    """Is asked for when it is needed, and again before it expires."""

    def __init__(
        self,
        http: SourceHttp,
        opening: Opening,
        token_url: str,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`token_url`: where the key of a service account names no other. Raises BadSource, UrlRefused."""
        self._http, self._opening, self._clock = http, opening, clock
        secrets = opening.secrets
        self._acts_for = opening.settings.get("acts_for", "")
        self._token, self._until = "", 0.0
        self._turn = asyncio.Lock()
        if key := secrets.get("service_account"):
            self._account: Mapping[str, str] = _account(key)
            self._url = secret_url(self._account.get("token_uri") or token_url, "token_uri")
        elif all(secrets.get(name) for name in _PERSON):
            self._account, self._url = {}, secret_url(token_url, "the address of tokens")
        else:
            raise BadSource("give the secret service_account, or client_id, client_secret and refresh_token together")

    async def headers(self, _: httpx.Request) -> Mapping[str, str]:
        """Lets a request in. Raises SourceAway."""
        async with self._turn:
            if self._clock() >= self._until:
                await self._renew()
            return {"Authorization": f"Bearer {self._token}"}

    async def _renew(self) -> None:
        if self._account:
            given = await grant(self._http, self._url, self._signed(), "Google")
        else:
            given = await refreshed(self._http, self._url, self._opening, "Google")
        self._token, self._until = given.access_token, self._clock() + max(0.0, given.lasts_s - _EARLY_S)

    def _signed(self) -> Mapping[str, str]:
        now = int(self._clock())
        claims = {
            "iss": self._account["client_email"],
            "scope": _SCOPE,
            "aud": self._url,
            "iat": now,
            "exp": now + _LASTS_S,
        }
        if self._acts_for:
            claims["sub"] = self._acts_for
        try:
            assertion = jwt.encode(claims, self._account["private_key"], algorithm="RS256")
        except (ValueError, TypeError, AttributeError, UnsupportedAlgorithm, jwt.PyJWTError) as error:
            raise BadSource(
                "the private key in service_account cannot be read; take the file as Google made it"
            ) from error
        return {"grant_type": _ASSERTION, "assertion": assertion}


def _account(key: str) -> Mapping[str, str]:
    """Raises BadSource."""
    try:
        account = json.loads(key)
        is_whole = all(isinstance(account[name], str) and account[name] for name in ("client_email", "private_key"))
    except (ValueError, LookupError, TypeError, RecursionError):
        is_whole = False
    if not is_whole:
        raise BadSource(
            "service_account is the JSON file of a service account's key, with client_email and private_key"
        )
    if len(account["private_key"]) > _PRIVATE_KEY_CHARS_MAX:
        raise BadSource(
            "the private key in service_account is longer than one of 4096 bits; take the file as Google made it"
        )
    return {name: value for name, value in account.items() if isinstance(value, str)}
