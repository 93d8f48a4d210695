"""Searching the web, against doubles of search engines that answer as their published APIs do."""

from __future__ import annotations

import json
import time
from typing import Any
from unittest.mock import Mock
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import ValidationError

from services.tools.adapters.http.web_search import search_engine
from services.tools.context import Services
from services.tools.settings import ToolsSettings
from services.tools.toolbox.network import web_search
from services.tools.web.searching import WebSearch, page_key
from tests.service.tools.boxes import Box
from tests.service.tools.http_server import HttpServer, http_server, said
from tests.service.tools.web.reading import shared_windows

BRAVE: dict[str, Any] = {
    "type": "search",
    "query": {"original": "harbour fees", "more_results_available": True},
    "web": {
        "type": "search",
        "results": [
            {
                "title": "Fees of the harbour",
                "url": "https://harbour.example/fees?utm_source=brave",
                "description": "A night costs <strong>42 euros</strong> &amp; up.",
                "page_age": "2026-03-04T10:00:00",
                "age": "March 4, 2026",
                "extra_snippets": ["Children sleep for nothing."],
            },
            {"title": "Fees", "url": "http://www.harbour.example/fees/", "description": "The same page once more."},
            {
                "title": "Winter",
                "url": "https://harbour.example/winter",
                "description": "Closed from November to March.",
            },
            {"title": "Bad", "url": "javascript:alert(1)", "description": "No page of the web."},
        ],
    },
}
SEARXNG: dict[str, Any] = {
    "query": "harbour fees",
    "number_of_results": 0,
    "results": [
        {
            "url": "https://harbour.example/fees",
            "title": "Fees of the harbour",
            "content": "A night costs 42 euros.",
            "publishedDate": "2026-03-04T00:00:00",
            "engine": "duckduckgo",
            "score": 1.0,
        },
        {"url": "https://harbour.example/winter", "title": "Winter", "content": "Closed.", "publishedDate": None},
    ],
    "answers": [],
    "suggestions": [],
}


def answering(told: object, status: str = "200 OK") -> HttpServer:
    return HttpServer(lambda _: said(json.dumps(told), status, "application/json"))


def brave(server: HttpServer, **more: Any) -> ToolsSettings:
    given = {"tools_web_search": "brave", "tools_web_search_key": "hunter2", "tools_web_search_url": server.url("/web")}
    return ToolsSettings(**{**given, **more})


def box(settings: ToolsSettings) -> Box:
    engine = search_engine(settings)
    assert engine is not None
    services = Mock(spec=Services)
    services.web_search = WebSearch(engine, shared_windows(settings, time.monotonic))
    return Box(settings, services=services)


def asked_for(server: HttpServer) -> list[dict[str, list[str]]]:
    return [parse_qs(urlsplit(asked.target).query) for asked in server.asked]


async def test_brave_is_asked_with_its_key_and_each_page_is_told_once() -> None:
    async with http_server(answering(BRAVE)) as server:
        outcome = await box(brave(server)).call("web_search", {"query": "harbour fees", "freshness": "month"})
    assert outcome.ok, outcome.error_message
    assert server.asked[0].headers["x-subscription-token"] == "hunter2"
    assert (asked_for(server)[0]["q"], asked_for(server)[0]["freshness"]) == (["harbour fees"], ["pm"])
    first, winter = outcome.passages
    assert first.text == "A night costs 42 euros & up.\nChildren sleep for nothing."
    assert first.document_name == "Fees of the harbour (harbour.example)"
    assert first.hit.chunk.metadata["date"] == "2026-03-04"
    assert winter.text == "Closed from November to March."
    assert [(page["url"], page.get("date")) for page in outcome.output["pages"]] == [
        ("https://harbour.example/fees?utm_source=brave", "2026-03-04"),
        ("https://harbour.example/winter", None),
    ]
    assert outcome.summary == "2 pages found by Brave Search for “harbour fees”."


@pytest.mark.parametrize("path", ["", "/", "/search"])
async def test_searxng_is_asked_for_json(path: str) -> None:
    async with http_server(answering(SEARXNG)) as server:
        given = ToolsSettings(tools_web_search="searxng", tools_web_search_url=server.url(path).rstrip())
        outcome = await box(given).call("web_search", {"query": "harbour fees", "freshness": "week"})
    assert server.asked[0].target.startswith("/search?")
    assert asked_for(server) == [{"q": ["harbour fees"], "format": ["json"], "time_range": ["month"]}]
    assert [page.get("date") for page in outcome.output["pages"]] == ["2026-03-04", None]
    assert len(outcome.passages) == 2


async def test_same_search_is_asked_once_and_fewer_pages_are_a_part_of_it() -> None:
    async with http_server(answering(BRAVE)) as server:
        tools = box(brave(server))
        await tools.call("web_search", {"query": "harbour fees"})
        fewer = await tools.call("web_search", {"query": "harbour fees", "top_k": 1})
        await tools.call("web_search", {"query": "harbour fees"}, tenant_id="other")
    assert len(fewer.passages) == 1
    assert len(server.asked) == 2


async def test_searches_of_a_run_are_counted() -> None:
    async with http_server(answering(BRAVE)) as server:
        tools = box(brave(server, tools_web_run_pages=1))
        await tools.call("web_search", {"query": "one"}, "run1/call1")
        more = await tools.call("web_search", {"query": "two"}, "run1/call2")
    assert (more.error_reason, len(server.asked)) == ("WEB_LIMIT", 1)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ("401 Unauthorized", "SEARCH_REFUSED"),
        ("403 Forbidden", "SEARCH_REFUSED"),
        ("422 Unprocessable Entity", "SEARCH_REFUSED"),
        ("429 Too Many Requests", "WEB_LIMIT"),
        ("503 Service Unavailable", "SERVICE_UNAVAILABLE"),
    ],
)
async def test_engine_that_refuses_is_told_without_its_key(status: str, reason: str) -> None:
    async with http_server(answering({"error": "hunter2"}, status)) as server:
        outcome = await box(brave(server)).call("web_search", {"query": "harbour"})
    assert outcome.error_reason == reason
    assert "hunter2" not in outcome.error_message


@pytest.mark.parametrize("told", [{}, {"web": None}, {"web": {"results": None}}, {"web": {"results": [1]}}, []])
async def test_engine_that_finds_nothing_or_answers_oddly_is_no_failure(told: object) -> None:
    async with http_server(answering(told)) as server:
        outcome = await box(brave(server)).call("web_search", {"query": "harbour"})
    assert (outcome.ok, outcome.output["pages"], outcome.output["message"]) == (
        True,
        [],
        "Nothing was found. Try other words.",
    )


async def test_engine_that_is_away_is_said() -> None:
    async with http_server(answering({})) as server:
        settings = brave(server)
    outcome = await box(settings).call("web_search", {"query": "harbour"})
    assert outcome.error_reason == "SERVICE_UNAVAILABLE"


def test_without_an_engine_it_is_not_offered() -> None:
    assert not web_search.is_available(ToolsSettings())
    assert search_engine(ToolsSettings()) is None


@pytest.mark.parametrize(("name", "says"), [("brave", "SEARCH_KEY"), ("searxng", "SEARCH_URL"), ("other", "brave")])
def test_engine_that_cannot_be_asked_is_named_at_the_start(name: str, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        ToolsSettings(tools_web_search=name)  # type: ignore[arg-type] # a wrong one


def test_addresses_of_one_page_have_one_key() -> None:
    assert page_key("https://www.a.example/x/?b=2&a=1&utm_medium=z#part") == page_key("http://a.example/x?a=1&b=2")
    assert page_key("https://a.example/x?id=1") != page_key("https://a.example/x?id=2")
