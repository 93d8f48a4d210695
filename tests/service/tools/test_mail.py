"""A mailbox as tools, on a real IMAP server over TLS."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from imapclient.exceptions import LoginError
from pydantic import SecretStr, ValidationError

from kit.network import imap as imap_module
from kit.network.egress import EgressGuard, parse_networks
from services.tools import toolbox
from services.tools.adapters import mail as mail_module
from services.tools.adapters.mail import ImapMailbox
from services.tools.connections.records import Connection
from services.tools.errors import ServiceUnavailable, ToolError
from services.tools.settings import ToolsSettings
from services.tools.sources.discovery import discover
from tests.doubles.imap import USER, MailHost
from tests.service.tools.boxes import NOW, Box
from tests.service.tools.connected import services_with

FEES = "The harbour takes 40 crowns a night."


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MailHost]:
    with MailHost(tmp_path_factory.mktemp("mail")).running() as made:
        yield made


@pytest.fixture(autouse=True)
def trusted(host: MailHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(host.authorities_file))


def mailbox(host: MailHost, networks: str = "127.0.0.0/8") -> ImapMailbox:
    return ImapMailbox(EgressGuard(parse_networks(networks)), f"imaps://127.0.0.1:{host.port}")


def box(host: MailHost, secret: str = "", *, is_token: bool = False, networks: str = "127.0.0.0/8") -> Box:
    server = mailbox(host, networks)
    connection = Connection("mail", server.address, USER, NOW, "ann", SecretStr(secret or host.password), is_token)
    services = services_with(connection)
    services.mail = server
    return Box(ToolsSettings(tools_mail_url=server.address), services=services)


async def test_found_message_is_cited_and_read_and_stays_unread(host: MailHost) -> None:
    await host.put("INBOX", "Lunch", "At noon?")
    await host.put("INBOX", "Hafengebühren für März", FEES)
    outcome = await box(host).call("mail_search", {"query": "harbour crowns", "sender": "bo@example.com"})
    (found,) = outcome.output["found"]
    assert (outcome.output["found_in_all"], found["unread"]) == (1, True)
    (passage,) = outcome.passages
    assert passage.document_name == "Hafengebühren für März (127.0.0.1)"
    assert "From: Bo <bo@example.com>\nTo: anna@example.com\nDate: 2026-03-02T10:00:00" in passage.text
    assert passage.metadata["url"].startswith("imap://127.0.0.1/INBOX;UIDVALIDITY=")
    caller = box(host)
    read = await caller.call("mail_read", {"message": found["message"]})
    assert FEES in "\n".join(each.text for each in read.passages)
    assert read.passages[0].metadata["url"] == passage.metadata["url"]
    assert not any(b"STORE" in command for command in host.commands)
    again = await box(host).call("mail_search", {"unread": True, "query": "crowns"})
    assert again.output["found_in_all"] == 1


async def test_folders_days_and_other_alphabets(host: MailHost) -> None:
    await host.do(lambda client: client.create_folder("Projekte/Brücke"))
    await host.put("Projekte/Brücke", "Plan", "Der Käse kostet vierzig Kronen.")
    listed = await box(host).call("mail_search", {"folder": "?"})
    assert {"INBOX", "Projekte/Brücke"} <= set(listed.output["folders"])
    found = await box(host).call("mail_search", {"folder": "Projekte/Brücke", "query": "Käse", "since": "2020-01-01"})
    assert found.output["found_in_all"] == 1, found
    none = await box(host).call("mail_search", {"folder": "Projekte/Brücke", "before": "2020-01-01"})
    assert (none.output["found"], "Try fewer words" in none.output["message"]) == ([], True)


@pytest.mark.parametrize("said", ["{10}", "{10+}", "(", ")", "a*b", "50%", "NIL", 'a"b\\', "Käse {3}", "(Käse)"])
async def test_words_are_words_whatever_they_mean_to_a_server(host: MailHost, said: str) -> None:
    outcome = await box(host).call("mail_search", {"query": "harbour", "subject": said})
    assert outcome.ok, outcome
    assert outcome.output["found_in_all"] == 0
    await host.put("INBOX", f"About {said}", "Of words.")
    assert (await box(host).call("mail_search", {"subject": said})).output["found_in_all"] > 0


def test_long_head_takes_no_time() -> None:
    """The standard library takes minutes for it, and nothing else in the process goes on."""
    began = time.monotonic()
    assert len(mail_module._decoded(b"=?a?q?x" * 40_000)) <= 300
    assert time.monotonic() - began < 1.0
    assert mail_module._decoded(b"=?utf-8?b?w6Q=?=") == "ä"


async def test_server_that_wants_rest_is_left_alone_by_logins(host: MailHost, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise LoginError("[UNAVAILABLE] too many")

    monkeypatch.setattr(imap_module, "_log_in", refuse)
    with pytest.raises(ServiceUnavailable, match="later"):
        await mailbox(host).account(SecretStr("s"), USER, is_token=False)


async def test_connection_that_nobody_waits_for_any_more_logs_nobody_in(
    host: MailHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, let_go, sockets = imap_module._connected, threading.Event(), []

    def slowly(*given: Any) -> socket.socket:
        let_go.wait(10)
        sockets.append(connect(*given))
        return sockets[0]

    monkeypatch.setattr(imap_module, "_connected", slowly)
    count = len(host.commands)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await mailbox(host).account(SecretStr(host.password), USER, is_token=False)
    let_go.set()
    async with asyncio.timeout(10):
        while not sockets or sockets[0].fileno() != -1:
            await asyncio.sleep(0.01)
    assert not any(b"AUTH" in command or b"LOGIN" in command for command in host.commands[count:])


async def test_newest_come_first_and_no_more_than_asked_for(host: MailHost) -> None:
    await host.do(lambda client: client.create_folder("Many"))
    for number in range(5):
        await host.put("Many", f"Letter {number}", "words")
    outcome = await box(host).call("mail_search", {"folder": "Many", "top_k": 2})
    assert outcome.output["found_in_all"] == 5
    assert [each.document_name.partition(" (")[0] for each in outcome.passages] == ["Letter 4", "Letter 3"]


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("mail_search", {"folder": "No such"}, "MAIL_FAILED"),
        ("mail_search", {"since": "2026-02-31"}, "INVALID_ARGUMENTS"),
        ("mail_search", {"query": "a b c d e f g h i"}, "INVALID_ARGUMENTS"),
        ("mail_search", {"sender": 'x"\r\nA1 DELETE INBOX'}, "INVALID_ARGUMENTS"),
        ("mail_read", {"message": "INBOX/1-999999"}, "MAIL_GONE"),
        ("mail_read", {"message": "INBOX/x-1"}, "INVALID_ARGUMENTS"),
        ("mail_read", {"message": "INBOX"}, "INVALID_ARGUMENTS"),
    ],
)
async def test_what_cannot_be_done_is_said(host: MailHost, tool: str, arguments: dict[str, str], reason: str) -> None:
    outcome = await box(host).call(tool, arguments)
    assert outcome.error_reason == reason, outcome


async def test_refused_login_address_and_size(host: MailHost, monkeypatch: pytest.MonkeyPatch) -> None:
    await host.put("INBOX", "Big", "x" * 5_000)
    refused = await box(host, "wrong").call("mail_search", {})
    assert (refused.error_reason, "wrong" in refused.error_message) == ("CONNECTION_REFUSED", False)
    assert (await box(host, networks="").call("mail_search", {})).error_reason == "ADDRESS_REFUSED"
    found = await box(host).call("mail_search", {"subject": "Big"})
    monkeypatch.setattr(mail_module, "FILE_BYTES_MAX", 4_000)
    read = await box(host).call("mail_read", {"message": found.output["found"][0]["message"]})
    assert read.error_reason == "MAIL_TOO_LARGE"


async def test_access_token_lets_in_and_a_connection_is_tried(host: MailHost) -> None:
    host.access_tokens = {"t0ken"}
    assert (await box(host, "t0ken", is_token=True).call("mail_search", {})).ok
    assert await mailbox(host).account(SecretStr("t0ken"), USER, is_token=True) == USER
    assert await mailbox(host).account(SecretStr(host.password), USER, is_token=False) == USER
    for secret, is_token in (("other", True), ("wrong", False)):
        with pytest.raises(ToolError, match="refuses the user"):
            await mailbox(host).account(SecretStr(secret), USER, is_token=is_token)


async def test_connection_is_asked_so_often_and_no_more(host: MailHost) -> None:
    caller = box(host)
    reasons = [(await caller.call("mail_read", {"message": "INBOX/1-999999"})).error_reason for _ in range(30)]
    assert set(reasons) == {"MAIL_GONE"}
    assert (await caller.call("mail_search", {})).error_reason == "WEB_LIMIT"


def test_tools_of_mail_are_offered_where_a_server_is_named() -> None:
    for url, missing in (("", "set GROUNDWORK_TOOLS_MAIL_URL"), ("imaps://imap.example.com", "")):
        found = discover(toolbox, ToolsSettings(tools_mail_url=url))
        assert all(found[name].missing.startswith(missing) for name in ("mail_search", "mail_read"))
        assert bool(found["mail_search"].missing) == bool(missing)


@pytest.mark.parametrize("url", ["imap.example.com", "https://imap.example.com", "imaps://a@b", "imaps://x/INBOX"])
def test_address_of_a_mail_server_is_checked(url: str) -> None:
    with pytest.raises(ValidationError):
        ToolsSettings(tools_mail_url=url)


def test_starttls_is_named_by_the_scheme() -> None:
    guard = EgressGuard()
    assert (ImapMailbox(guard, "imap://mail.example.com")._port, ImapMailbox(guard, "imaps://h")._port) == (143, 993)


def test_host_of_another_alphabet_is_asked_by_the_name_that_was_checked() -> None:
    assert ImapMailbox(EgressGuard(), "imaps://faß.example")._host == "xn--fa-hia.example", "not fass.example"
