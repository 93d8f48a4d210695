"""Access tokens of OAuth (RFC 6749), with which a source is let in for an hour or so."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from services.ingest.adapters.source_http import SourceHttp, secret_url
from services.ingest.errors import BadSource, SourceAway

_LASTS_S = 3600
"""Where the server does not say it."""


async def access_token(http: SourceHttp, url: str, form: Mapping[str, str], server: str) -> tuple[str, float]:
    """An access token and for how many seconds it lasts. Raises SourceAway."""
    answer = await http.post(url, form)
    try:
        said: Any = answer.json()
        token, lasts_s = said.get("access_token"), float(said.get("expires_in", _LASTS_S))
    except (ValueError, TypeError, AttributeError):
        said, token, lasts_s = {}, None, 0.0
    if answer.status_code != 200 or not isinstance(token, str) or not (token.isascii() and token.isprintable()):
        why = str(said.get("error_description") or said.get("error") or answer.status_code)[:200]
        raise SourceAway(f"{server} gives out no token ({why}); give the source other secrets")
    return token, lasts_s


def refresher(http: SourceHttp, token_url: str, secrets: Mapping[str, str]) -> Callable[[], Awaitable[str]] | None:
    """Gives out an access token for a person's refresh token; None where the secrets have none. Raises BadSource, UrlRefused."""
    if not secrets.get("refresh_token"):
        return None
    if not (secrets.get("client_id") and token_url):
        raise BadSource("a refresh_token needs the secret client_id and the setting token_url")
    url = secret_url(token_url, "token_url")
    known = {name: secrets[name] for name in ("client_id", "client_secret", "refresh_token") if secrets.get(name)}

    async def refresh() -> str:
        token, _ = await access_token(http, url, {"grant_type": "refresh_token", **known}, "the provider")
        return token

    return refresh
