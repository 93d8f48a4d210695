"""Search engines of the web, by their published APIs: Brave Search (api-dashboard.search.brave.com/documentation) and SearXNG
(docs.searxng.org/dev/search_api.html). The operator names the address, so it is asked without the guard for addresses of users."""

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import httpx

from services.tools.errors import ServiceUnavailable, ToolError
from services.tools.settings import ToolsSettings
from services.tools.web.pages import URL_CHARACTERS_MAX
from services.tools.web.searching import Result, SearchEngine

BRAVE_URL = "https://api.search.brave.com/res/v1/web/search"
TIMEOUT_S = 10.0
_BYTES_MAX = 2 * 1024 * 1024
_COUNT = 20
"""The most that Brave gives at once."""
_SNIPPET_CHARACTERS_MAX = 1_500
_TITLE_CHARACTERS_MAX = 200
_TAG = re.compile(r"<[^>]{0,200}>")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def search_engine(settings: ToolsSettings) -> SearchEngine | None:
    """The engine that the settings name; None where they name none."""
    match settings.tools_web_search:
        case "brave":
            return Brave(settings.tools_web_search_url or BRAVE_URL, settings.tools_web_search_key.get_secret_value())
        case "searxng":
            return Searxng(settings.tools_web_search_url)
        case _:
            return None


class Brave:
    """Brave Search. Its key is sent as X-Subscription-Token."""

    name = "Brave Search"
    _FRESHNESS: Mapping[str, str] = {"day": "pd", "week": "pw", "month": "pm", "year": "py"}

    def __init__(self, url: str, key: str) -> None:
        self._url, self._key = url, key

    async def search(self, query: str, freshness: str) -> Sequence[Result]:
        asked = {"q": query, "count": str(_COUNT), "text_decorations": "false"}
        if freshness:
            asked["freshness"] = self._FRESHNESS[freshness]
        reply = await _json(self.name, self._url, asked, {"X-Subscription-Token": self._key})
        found = _listed(_object(reply.get("web")).get("results"))
        return [
            _result(each, each.get("description"), each.get("extra_snippets"), each.get("page_age")) for each in found
        ]


class Searxng:
    """A SearXNG of the operator's, whose settings allow the format `json`."""

    name = "SearXNG"
    _TIME_RANGE: Mapping[str, str] = {"day": "day", "week": "month", "month": "month", "year": "year"}
    """It documents no week."""

    def __init__(self, url: str) -> None:
        self._url = f"{url.rstrip('/').removesuffix('/search')}/search"

    async def search(self, query: str, freshness: str) -> Sequence[Result]:
        asked = {"q": query, "format": "json"}
        if freshness:
            asked["time_range"] = self._TIME_RANGE[freshness]
        found = _listed((await _json(self.name, self._url, asked, {})).get("results"))
        return [_result(each, each.get("content"), (), each.get("publishedDate")) for each in found[:_COUNT]]


async def _json(name: str, url: str, asked: Mapping[str, str], headers: Mapping[str, str]) -> Mapping[str, Any]:
    """The object that the engine answers with. Raises ToolError."""
    sent = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
    try:
        async with (
            httpx.AsyncClient(timeout=TIMEOUT_S) as client,
            client.stream("GET", url, params=asked, headers=sent) as response,
        ):
            status, body = response.status_code, bytearray()
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > _BYTES_MAX:
                    raise ToolError(f"{name} answered with more than can be read; search for something narrower")
    except (httpx.TransportError, TimeoutError) as error:
        raise ServiceUnavailable(f"{name} does not answer now; go on without searching the web") from error
    if status != 200:
        raise _refused(name, status)
    try:
        return _object(json.loads(body))
    except ValueError as error:
        raise ToolError(
            f"{name} answered with something that is no JSON; an operator has to look at its address"
        ) from error


def _refused(name: str, status: int) -> ToolError:
    if status == 429:
        return ToolError(f"{name} was asked too often; go on with what was found", reason="WEB_LIMIT")
    if status in (401, 403):
        return ToolError(
            f"{name} refused the search ({status}); an operator has to look at GROUNDWORK_TOOLS_WEB_SEARCH_KEY or, of SearXNG, "
            "allow the format json in its settings",
            reason="SEARCH_REFUSED",
        )
    if status >= 500:
        return ServiceUnavailable(f"{name} is not available now ({status}); go on without searching the web")
    return ToolError(f"{name} did not take the search ({status}); write it in other words", reason="SEARCH_REFUSED")


def _result(reply: Mapping[str, Any], snippet: object, more: object, date: object) -> Result:
    snippets = [_plain(each) for each in [snippet, *(more if isinstance(more, list) else [])]]
    found = _DATE.match(date) if isinstance(date, str) else None
    url = reply.get("url")
    return Result(
        url if isinstance(url, str) and len(url) <= URL_CHARACTERS_MAX else "",
        _plain(reply.get("title"))[:_TITLE_CHARACTERS_MAX],
        "\n".join(dict.fromkeys(filter(None, snippets)))[:_SNIPPET_CHARACTERS_MAX],
        found[0] if found else "",
    )


def _plain(text: object) -> str:
    """Without the marks that engines put around words that were found."""
    return " ".join(html.unescape(_TAG.sub("", text)).split()) if isinstance(text, str) else ""


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _listed(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, Iterable) else []
