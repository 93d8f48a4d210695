"""Sending e-mail through a real SMTP server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from services.tools.settings import ToolsSettings
from services.tools.toolbox.network import send_email
from tests.service.tools.boxes import Box
from tests.service.tools.mail_server import PASSWORD, MailServer, mail_server, make_certificate
from tests.unit.tools.fakes import MemoryCallStore

EMAIL: dict[str, Any] = {"to": ["ann@example.com"], "subject": "Refunds", "text": "Fourteen days.\n"}


def _settings(server: MailServer, **more: Any) -> ToolsSettings:
    return ToolsSettings(
        smtp_host="127.0.0.1",
        **{"smtp_port": server.port, "smtp_tls": "none", "smtp_from": "Groundwork <bot@example.com>", **more},
    )


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls") / "mail.pem")


async def test_email_reaches_everybody_who_is_named_once() -> None:
    async with mail_server(MailServer()) as server:
        email = {
            "to": ["ann@example.com", "bob@müller.example.org", "Ann@Example.com"],
            "cc": ["eve@example.com", "ann@example.com"],
            "reply_to": "desk@example.com",
            "subject": "Grüße, 返金",
            "text": "Fourteen days.\n.\nЧетырнадцать дней.\n",
        }
        outcome = await Box(_settings(server)).call("send_email", email)
    everybody = ["ann@example.com", "bob@xn--mller-kva.example.org", "eve@example.com"]
    assert (outcome.ok, outcome.error_message, outcome.output["recipients"]) == (True, "", everybody)
    [(recipients, message)] = server.delivered
    assert recipients == everybody
    assert (message["From"], message["To"]) == ("Groundwork <bot@example.com>", ", ".join(everybody[:2]))
    assert (message["Cc"], message["Reply-To"]) == ("eve@example.com", "desk@example.com")
    assert message["Subject"] == email["subject"]
    assert message["Date"].datetime.isoformat() == "2026-11-22T12:00:00+00:00"
    assert message.get_content().replace("\r\n", "\n") == email["text"]
    assert message["Message-ID"] == outcome.output["message_id"]


async def test_call_that_is_asked_for_again_sends_nothing_again() -> None:
    store = MemoryCallStore()
    async with mail_server(MailServer()) as server:
        first = await Box(_settings(server), store).call("send_email", EMAIL, "run1/call1")
        again = await Box(_settings(server), store).call("send_email", EMAIL, "run1/call1")
    assert (first.ok, again.output) == (True, first.output)
    assert len(server.delivered) == 1


async def test_message_id_is_that_of_the_call_and_its_tenant() -> None:
    ids = []
    async with mail_server(MailServer()) as server:
        for tenant_id, call_id in (("acme", "1"), ("acme", "1"), ("acme", "2"), ("umbrella", "1")):
            outcome = await Box(_settings(server)).call("send_email", EMAIL, call_id, tenant_id)
            ids.append(outcome.output["message_id"])
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3
    assert ids[0].endswith("@example.com>")


async def test_one_refused_recipient_means_that_nobody_gets_it() -> None:
    async with mail_server(MailServer(refuses=("bob@example.com",))) as server:
        outcome = await Box(_settings(server)).call(
            "send_email", {**EMAIL, "to": ["ann@example.com", "bob@example.com"]}
        )
    assert (outcome.error_reason, server.delivered) == ("RECIPIENT_REFUSED", [])
    assert "bob@example.com (550 5.1.1 no such user)" in outcome.error_message
    assert "ann@example.com" not in outcome.error_message


@pytest.mark.parametrize("answer", ["554 5.7.1 looks like spam", "451 4.3.0 try again later"])
async def test_text_that_the_server_refuses_is_certainly_not_sent(answer: str) -> None:
    async with mail_server(MailServer(answer=answer)) as server:
        outcome = await Box(_settings(server)).call("send_email", EMAIL)
    assert outcome.error_reason == "EMAIL_REFUSED"
    assert answer in outcome.error_message


async def test_server_that_dies_after_the_text_leaves_the_email_in_doubt_and_it_is_never_sent_again() -> None:
    store = MemoryCallStore()
    async with mail_server(MailServer(hangs_up=True)) as server:
        first = await Box(_settings(server), store).call("send_email", EMAIL, "run1/call1")
        server.hangs_up = False
        again = await Box(_settings(server), store).call("send_email", EMAIL, "run1/call1")
    assert (first.error_reason, again.error_reason) == ("CALL_IN_DOUBT", "CALL_IN_DOUBT")
    assert "may have been sent" in again.error_message
    assert len(server.delivered) == 1


async def test_server_that_does_not_answer_to_the_text_leaves_it_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send_email, "HANDING_OVER_TIMEOUT_S", 0.2)
    never = asyncio.Event()
    async with mail_server(MailServer(silent=never)) as server:
        outcome = await Box(_settings(server)).call("send_email", EMAIL)
        never.set()
    assert outcome.error_reason == "CALL_IN_DOUBT"


async def test_server_that_is_away_or_silent_from_the_start_has_certainly_sent_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with mail_server(MailServer()) as server:
        settings = _settings(server)
    assert (await Box(settings).call("send_email", EMAIL)).error_reason == "EMAIL_NOT_SENT"

    hung_up = asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        hung_up.set()

    monkeypatch.setattr(send_email, "PREPARING_TIMEOUT_S", 0.2)
    async with await asyncio.start_server(listen, "127.0.0.1", 0) as silent:
        settings = _settings(server, smtp_port=silent.sockets[0].getsockname()[1])
        assert (await Box(settings).call("send_email", EMAIL)).error_reason == "EMAIL_NOT_SENT"
        await hung_up.wait()


@pytest.mark.parametrize("tls", ["starttls", "tls"])
async def test_login_and_text_go_over_a_connection_whose_certificate_was_checked(tls: str, certificate: Path) -> None:
    async with mail_server(MailServer(), tls, certificate) as server:
        trusted = {"smtp_tls": tls, "smtp_user": "bot", "smtp_password": PASSWORD, "smtp_ca_file": certificate}
        assert (await Box(_settings(server, **trusted)).call("send_email", EMAIL)).ok
        outcome = await Box(_settings(server, **{**trusted, "smtp_ca_file": None})).call("send_email", EMAIL)
    assert outcome.error_reason == "EMAIL_NOT_SENT"
    assert (len(server.delivered), server.logins) == (1, ["bot"])


async def test_server_without_encryption_is_not_spoken_to_in_the_clear() -> None:
    async with mail_server(MailServer()) as server:
        settings = _settings(server, smtp_tls="starttls", smtp_user="bot", smtp_password=PASSWORD)
        outcome = await Box(settings).call("send_email", EMAIL)
    assert (outcome.error_reason, server.delivered, server.logins) == ("EMAIL_NOT_SENT", [], [])


async def test_refused_login_sends_nothing_and_shows_no_password(certificate: Path) -> None:
    async with mail_server(MailServer(), "starttls", certificate) as server:
        login = {"smtp_tls": "starttls", "smtp_user": "bot", "smtp_password": "hunter2", "smtp_ca_file": certificate}
        outcome = await Box(_settings(server, **login)).call("send_email", EMAIL)
    assert (outcome.error_reason, server.delivered) == ("EMAIL_NOT_SENT", [])
    assert "GROUNDWORK_SMTP_USER" in outcome.error_message
    assert "hunter2" not in outcome.error_message


@pytest.mark.parametrize(
    ("email", "reason"),
    [
        ({"to": ["ann@example.com\r\nBcc: eve@example.com"]}, "BAD_ADDRESS"),
        ({"to": ["Ann <ann@example.com>"]}, "BAD_ADDRESS"),
        ({"to": ["ann@example.com, eve@example.com"]}, "BAD_ADDRESS"),
        ({"cc": ["nobody"]}, "BAD_ADDRESS"),
        ({"reply_to": "eve@example.com\nBcc: x@example.com"}, "BAD_ADDRESS"),
        ({"subject": "Hello\r\nBcc: eve@example.com"}, "BAD_SUBJECT"),
        ({"subject": "Hello\u2028Bcc: eve@example.com"}, "BAD_SUBJECT"),
        ({"to": []}, "INVALID_ARGUMENTS"),
        (
            {"to": [f"a{n}@example.com" for n in range(15)], "cc": [f"b{n}@example.com" for n in range(6)]},
            "TOO_MANY_RECIPIENTS",
        ),
        ({"text": "x" * 50_001}, "INVALID_ARGUMENTS"),
        ({"to": ["ann@example.com", "eve@evil.example"]}, "RECIPIENT_NOT_ALLOWED"),
        ({"cc": ["eve@sub.example.com"]}, "RECIPIENT_NOT_ALLOWED"),
        ({"cc": ["eve@evil-example.org"]}, "RECIPIENT_NOT_ALLOWED"),
    ],
)
async def test_email_that_must_not_be_sent_reaches_no_server(email: dict[str, Any], reason: str) -> None:
    async with mail_server(MailServer()) as server:
        settings = _settings(server, smtp_recipient_domains="example.com, *.example.org")
        outcome = await Box(settings).call("send_email", {**EMAIL, **email})
        assert (await Box(settings).call("send_email", {**EMAIL, "to": ["bob@team.example.org"]})).ok
    assert (outcome.error_reason, len(server.delivered)) == (reason, 1)


async def test_without_a_mail_server_it_is_not_offered_and_says_so() -> None:
    assert not send_email.is_available(ToolsSettings())
    assert send_email.is_available(ToolsSettings(smtp_host="mail.example.com", smtp_from="bot@example.com"))
    outcome = await Box(ToolsSettings()).call("send_email", EMAIL)
    assert (outcome.ok, "GROUNDWORK_SMTP_HOST" in outcome.error_message) == (False, True)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"smtp_host": "mail.example.com"}, "is not an e-mail address"),
        ({"smtp_host": "mail.example.com", "smtp_from": "bot"}, "is not an e-mail address"),
        ({"smtp_tls": "none", "smtp_user": "bot"}, "a password is not sent in the clear"),
    ],
)
def test_settings_that_cannot_work_are_named_at_the_start(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        ToolsSettings(**settings)
