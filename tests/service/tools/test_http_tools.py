"""Asking HTTP servers, over real connections."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from services.tools.adapters.http import http_servers
from services.tools.settings import ToolsSettings
from services.tools.toolbox.network import http_get, http_request
from tests.service.tools.boxes import Box
from tests.service.tools.http_server import Asked, HttpServer, http_server, said
from tests.service.tools.mail_server import make_certificate
from tests.unit.tools.fakes import MemoryCallStore

LOOPBACK = "127.0.0.0/8"


def _settings(server: HttpServer, **more: Any) -> ToolsSettings:
    listed = f"http://127.0.0.1:{server.port}"
    return ToolsSettings(**{"tools_http_hosts": listed, "egress_allowed_networks": LOOPBACK, **more})


async def test_text_and_json_are_read() -> None:
    def answer(asked: Asked) -> bytes:
        if asked.target == "/text":
            return said("Grüße", content_type="text/plain; charset=utf-8")
        return said('{"a": 1}', "404 Not Found", "application/problem+json")

    async with http_server(HttpServer(answer)) as server:
        box = Box(_settings(server))
        text = await box.call("http_get", {"url": server.url("/text")})
        problem = await box.call("http_get", {"url": server.url("/odd?x=1#part")})
    assert (text.ok, text.output) == (
        True,
        {"url": server.url("/text"), "status": 200, "content_type": "text/plain", "text": "Grüße"},
    )
    assert (problem.ok, problem.output["status"], problem.output["text"]) == (True, 404, '{"a": 1}')
    assert problem.summary == "127.0.0.1 answered with 404"
    assert [(asked.method, asked.target) for asked in server.asked] == [("GET", "/text"), ("GET", "/odd?x=1")]


async def test_head_asks_for_the_status_alone() -> None:
    async with http_server(HttpServer(lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n")) as server:
        outcome = await Box(_settings(server)).call("http_get", {"url": server.url(), "method": "HEAD"})
    assert (outcome.output["status"], outcome.output["text"], server.asked[0].method) == (200, "", "HEAD")


@pytest.mark.parametrize(
    ("content_type", "more"),
    [("application/pdf", {}), ("image/png", {}), ("text/plain", {"Content_Encoding": "gzip"})],
)
async def test_what_is_not_text_is_left_out_and_said(content_type: str, more: dict[str, str]) -> None:
    async with http_server(HttpServer(lambda _: said("%PDF", content_type=content_type, **more))) as server:
        outcome = await Box(_settings(server)).call("http_get", {"url": server.url()})
    assert (outcome.output["text"], outcome.output["note"]) == (None, "the answer is not text and was left out")
    assert server.asked[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("size", [50_000, 2_000_000])
async def test_long_text_is_cut_and_said(size: int) -> None:
    async with http_server(HttpServer(lambda _: said("x" * size))) as server:
        outcome = await Box(_settings(server)).call("http_get", {"url": server.url()})
    assert (len(outcome.output["text"]), outcome.output["truncated"]) == (http_servers.TEXT_CHARACTERS_MAX, True)


async def test_server_that_never_ends_its_answer_is_read_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_servers, "BODY_TIMEOUT_S", 0.2)
    begun = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nbegun"
    async with http_server(HttpServer(lambda _: begun, ends=asyncio.Event())) as server:
        outcome = await Box(_settings(server)).call("http_get", {"url": server.url()})
        assert server.ends is not None
        server.ends.set()
    assert (outcome.output["text"], outcome.output["truncated"]) == ("begun", True)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://localhost:{port}/", "HOST_NOT_ALLOWED"),  # the same machine by another name
        ("https://127.0.0.1:{port}/", "HOST_NOT_ALLOWED"),
        ("http://127.0.0.1/", "HOST_NOT_ALLOWED"),
        ("http://169.254.169.254/latest/meta-data", "HOST_NOT_ALLOWED"),
        ("http://127.0.0.1:{port}@evil.example/", "URL_REFUSED"),
        ("http://user:secret@127.0.0.1:{port}/", "URL_REFUSED"),
        ("http://evil.example\\@127.0.0.1:{port}/", "URL_REFUSED"),
        ("http://0x7f.1:{port}/", "URL_REFUSED"),
        ("http://2130706433:{port}/", "URL_REFUSED"),
        ("http://127.0.0.1:{port}/\r\nX-Evil: 1", "URL_REFUSED"),
        ("file:///etc/passwd", "URL_REFUSED"),
        ("ftp://127.0.0.1:{port}/", "URL_REFUSED"),
    ],
)
@pytest.mark.parametrize("tool", ["http_get", "http_request"])
async def test_url_that_is_not_listed_is_not_asked(tool: str, url: str, reason: str) -> None:
    async with http_server(HttpServer(lambda _: said("secret"))) as server:
        arguments = {"url": url.format(port=server.port)} | ({"method": "POST"} if tool == "http_request" else {})
        outcome = await Box(_settings(server)).call(tool, arguments)
    assert (outcome.error_reason, server.asked) == (reason, [])


async def test_listed_host_at_a_private_address_needs_its_network_allowed_too() -> None:
    async with http_server(HttpServer(lambda _: said("secret"))) as server:
        settings = _settings(server, egress_allowed_networks="")
        outcome = await Box(settings).call("http_get", {"url": server.url()})
    assert (outcome.error_reason, server.asked) == ("ADDRESS_REFUSED", [])
    assert "GROUNDWORK_EGRESS_ALLOWED_NETWORKS" in outcome.error_message


async def test_redirect_is_followed_to_listed_places_only() -> None:
    def answer(asked: Asked) -> bytes:
        away = {
            "/a": "/b?x=1",
            "/out": f"http://localhost:{server.port}/b",
            "/file": "file:///etc/passwd",
            "/loop": "/loop",
        }
        target = away.get(asked.target)
        return said("", "302 Found", Location=target) if target else said("here")

    async with http_server(HttpServer(answer)) as server:
        box = Box(_settings(server))
        followed = await box.call("http_get", {"url": server.url("/a")})
        refused = [
            (await box.call("http_get", {"url": server.url(path)})).error_reason for path in ("/out", "/file", "/loop")
        ]
    assert (followed.output["text"], followed.output["url"]) == ("here", server.url("/b?x=1"))
    assert refused == ["HOST_NOT_ALLOWED", "URL_REFUSED", "TOO_MANY_REDIRECTS"]
    assert [asked.target for asked in server.asked] == ["/a", "/b?x=1", "/out", "/file", *["/loop"] * 4]


async def test_headers_of_the_operator_go_to_their_host_and_are_never_told() -> None:
    def answer(asked: Asked) -> bytes:
        if asked.target == "/away":
            return said("", "307 Temporary Redirect", Location=f"http://localhost:{server.port}/there")
        return said(f"you said {asked.headers.get('authorization')}")

    async with http_server(HttpServer(answer)) as server:
        here, there = f"http://127.0.0.1:{server.port}", f"http://localhost:{server.port}"
        settings = _settings(
            server, tools_http_hosts=f"{here},{there}", tools_http_headers={here: {"Authorization": "Bearer hunter2"}}
        )
        outcome = await Box(settings).call("http_get", {"url": server.url("/echo")})
        await Box(settings).call("http_get", {"url": server.url("/away")})
    assert outcome.output["text"] == "you said [hidden]"
    assert "hunter2" not in repr(settings)
    assert [asked.headers.get("authorization") for asked in server.asked] == ["Bearer hunter2", "Bearer hunter2", None]


async def test_request_is_made_once_and_carries_the_name_of_its_call() -> None:
    store = MemoryCallStore()
    order = {"method": "POST", "url": "", "json": {"count": 3, "note": "Grüße"}}
    async with http_server(HttpServer(lambda _: said('{"id": 7}', "201 Created", "application/json"))) as server:
        order["url"] = server.url("/orders")
        first = await Box(_settings(server), store).call("http_request", order, "run1/call1")
        again = await Box(_settings(server), store).call("http_request", order, "run1/call1")
        await Box(_settings(server), store).call("http_request", order, "run1/call2")
        text = await Box(_settings(server)).call(
            "http_request", {"method": "PUT", "url": server.url(), "text": "plain"}
        )
    assert (first.output["status"], first.output["text"], again.output) == (201, '{"id": 7}', first.output)
    assert text.ok
    [one, two, put] = server.asked
    assert (one.method, json.loads(one.body), one.headers["content-type"]) == (
        "POST",
        order["json"],
        "application/json",
    )
    assert one.headers["idempotency-key"] != two.headers["idempotency-key"]
    assert (put.method, put.body) == ("PUT", b"plain")


async def test_redirect_of_a_request_that_writes_is_told_and_not_followed() -> None:
    async with http_server(HttpServer(lambda _: said("", "307 Temporary Redirect", Location="/elsewhere"))) as server:
        outcome = await Box(_settings(server)).call(
            "http_request", {"method": "DELETE", "url": server.url("/orders/7")}
        )
    assert (outcome.output["status"], outcome.output["location"]) == (307, server.url("/elsewhere"))
    assert len(server.asked) == 1


@pytest.mark.parametrize("silent", [False, True])
async def test_server_that_does_not_answer_to_a_request_leaves_it_in_doubt(
    silent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    real_time = loop.time

    def never(asked: Asked) -> bytes | None:
        if not silent:
            return None
        late_s = len(server.asked) * http_servers.ANSWER_TIMEOUT_S  # the clock jumps once the request is there
        monkeypatch.setattr(loop, "time", lambda: real_time() + late_s)
        return b""

    store = MemoryCallStore()
    server = HttpServer(never, ends=asyncio.Event())
    async with http_server(server):
        write = {"method": "POST", "url": server.url("/orders")}
        first = await Box(_settings(server), store).call("http_request", write, "run1/call1")
        again = await Box(_settings(server), store).call("http_request", write, "run1/call1")
        read = await Box(_settings(server)).call("http_get", {"url": server.url()})
        assert server.ends is not None
        server.ends.set()
    assert (first.error_reason, again.error_reason, read.error_reason) == (
        "CALL_IN_DOUBT",
        "CALL_IN_DOUBT",
        "HTTP_FAILED",
    )
    assert [asked.method for asked in server.asked] == ["POST", "GET"]


async def test_answer_that_breaks_off_is_an_answer_of_a_request_that_writes() -> None:
    begun = b"HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nbegun"
    async with http_server(HttpServer(lambda _: begun)) as server:
        outcome = await Box(_settings(server)).call("http_request", {"method": "POST", "url": server.url()})
    assert (outcome.ok, outcome.output["status"], outcome.output["truncated"]) == (True, 201, True)


async def test_request_that_found_nobody_was_certainly_not_made(tmp_path: Path) -> None:
    async with http_server(HttpServer(lambda _: said(""))) as server:
        settings, write = _settings(server), {"method": "POST", "url": server.url()}
    assert (await Box(settings).call("http_request", write)).error_reason == "HTTP_FAILED"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(make_certificate(tmp_path / "own.pem"))
    async with await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context) as secured:
        place = f"127.0.0.1:{secured.sockets[0].getsockname()[1]}"
        settings = ToolsSettings(tools_http_hosts=place, egress_allowed_networks=LOOPBACK)
        outcome = await Box(settings).call("http_request", {"method": "POST", "url": f"https://{place}/"})
    assert (outcome.error_reason, "certificate" in outcome.error_message.lower()) == ("HTTP_FAILED", True)


async def test_without_hosts_they_are_not_offered_and_say_so() -> None:
    assert not http_get.is_available(ToolsSettings())
    assert not http_request.is_available(ToolsSettings())
    assert http_get.is_available(ToolsSettings(tools_http_hosts="api.example.com"))
    outcome = await Box(ToolsSettings()).call("http_get", {"url": "https://api.example.com/"})
    assert (outcome.error_reason, "these may: none" in outcome.error_message) == ("HOST_NOT_ALLOWED", True)


def test_settings_come_from_the_environment_and_keep_their_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDWORK_TOOLS_HTTP_HOSTS", "API.example.com, *.example.org")
    monkeypatch.setenv("GROUNDWORK_TOOLS_HTTP_HEADERS", '{"api.example.com": {"X-Key": "hunter2"}}')
    monkeypatch.setenv("GROUNDWORK_SMTP_PASSWORD", "hunter3")
    settings = ToolsSettings()
    assert settings.tools_http_hosts == ("api.example.com", "*.example.org")
    assert settings.tools_http_headers["api.example.com"]["X-Key"].get_secret_value() == "hunter2"
    assert settings.smtp_password.get_secret_value() == "hunter3"
    assert "hunter" not in repr(settings)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"tools_http_hosts": "api.example.com/v1"}, "is not a host"),
        ({"tools_http_hosts": "*"}, "is not a host"),
        ({"tools_http_hosts": "ftp://api.example.com"}, "is not a host"),
        ({"tools_http_hosts": "user@api.example.com"}, "is not a host"),
        ({"tools_http_headers": {"*.example.com": {"X-Key": "1"}}}, "by its exact name"),
        ({"tools_http_headers": {"api.example.com": {"X-Key": "a\r\nb"}}}, "characters that a header cannot have"),
        ({"tools_http_headers": {"api.example.com": {"X Key": "a"}}}, "characters that a header cannot have"),
        ({"egress_allowed_networks": "everything"}, "does not appear to be"),
    ],
)
def test_settings_that_cannot_work_are_named_at_the_start(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        ToolsSettings(**settings)
