"""Access tokens of OAuth (RFC 6749), with which a source is let in for an hour or so."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from services.ingest.adapters.source_http import SourceHttp, secret_url
from services.ingest.errors import BadSource, SourceAway
from services.ingest.sources.ports import Opening

_LASTS_S = 3600
"""Where the server does not say it."""


@dataclass(frozen=True)
class Grant:
    """What a server gives out."""

    access_token: str
    lasts_s: float
    refresh_token: str
    """Instead of the one that was sent; empty where that one stays valid."""


async def refreshed(http: SourceHttp, url: str, opening: Opening, server: str) -> Grant:
    """For the refresh token of a source. One that is given out instead is kept first. Raises SourceAway, Unavailable."""
    secrets = await opening.read_secrets()
    known = {name: secrets[name] for name in ("client_id", "client_secret", "refresh_token") if secrets.get(name)}
    given = await grant(http, url, {"grant_type": "refresh_token", **known}, server)
    if given.refresh_token not in ("", secrets.get("refresh_token")):
        await opening.exchange_secrets({"refresh_token": given.refresh_token})
    return given


async def grant(http: SourceHttp, url: str, form: Mapping[str, str], server: str) -> Grant:
    """Raises SourceAway."""
    answer = await http.post(url, form)
    try:
        said: Any = answer.json()
        token, lasts_s = said.get("access_token"), float(said.get("expires_in", _LASTS_S))
    except (ValueError, TypeError, AttributeError):
        said, token, lasts_s = {}, None, 0.0
    if answer.status_code != 200 or not isinstance(token, str) or not (token.isascii() and token.isprintable()):
        why = str(said.get("error_description") or said.get("error") or answer.status_code)[:200]
        raise SourceAway(f"{server} gives out no token ({why}); give the source other secrets")
    fresh = said.get("refresh_token")
    return Grant(token, lasts_s, fresh if isinstance(fresh, str) and fresh.isascii() and fresh.isprintable() else "")


def refresher(http: SourceHttp, token_url: str, opening: Opening) -> Callable[[], Awaitable[str]] | None:
    """Gives out an access token for a person's refresh token; None where the secrets have none. Raises BadSource, UrlRefused."""
    secrets = opening.secrets
    if not secrets.get("refresh_token"):
        return None
    if not (secrets.get("client_id") and token_url):
        raise BadSource("a refresh_token needs the secret client_id and the setting token_url")
    url = secret_url(token_url, "token_url")

    async def refresh() -> str:
        return (await refreshed(http, url, opening, "the provider")).access_token

    return refresh
