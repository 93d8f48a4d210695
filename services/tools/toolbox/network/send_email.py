"""Sends an e-mail through the operator's mail server: to all who are named, once, or to nobody.

    fails before the text is handed over      nothing was sent, for certain      EMAIL_…
    the server refuses the text (4xx, 5xx)    nothing was sent, for certain      EMAIL_REFUSED
    no answer after the text                  it may be on its way               CALL_IN_DOUBT, never repeated

The text is handed over only after the server has accepted every recipient: else whom it reached would depend on chance.
"""

import asyncio
import ssl
from collections.abc import Iterable
from contextlib import suppress
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP

import aiosmtplib

from services.tools.context import ToolContext
from services.tools.errors import CallInDoubt, ToolError
from services.tools.models import Effect, Policy, ToolOutput
from services.tools.outside.hosts import name_is_listed
from services.tools.outside.mail_addresses import parse_address, parse_sender
from services.tools.settings import ToolsSettings

RECIPIENTS_MAX = 20
"""Together with copies: more is a mailing, which nobody should start with one click."""
SUBJECT_CHARACTERS_MAX = 200
TEXT_CHARACTERS_MAX = 50_000
_ADDRESSES = {
    "type": "array",
    "items": {"type": "string", "minLength": 3, "maxLength": 254},
    "maxItems": RECIPIENTS_MAX,
}

SCHEMA = {
    "type": "function",
    "function": {
        "name": "send_email",
        "description": "Sends an e-mail in plain text. A person is asked before each one.",
        "parameters": {
            "type": "object",
            "properties": {
                "to": {
                    **_ADDRESSES,
                    "minItems": 1,
                    "description": "Addresses, such as ann@example.com, without names.",
                },
                "subject": {"type": "string", "minLength": 1, "maxLength": SUBJECT_CHARACTERS_MAX},
                "text": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": TEXT_CHARACTERS_MAX,
                    "description": "The whole e-mail, with greeting and signature.",
                },
                "cc": {**_ADDRESSES, "description": "Addresses that get a copy."},
                "reply_to": {"type": "string", "minLength": 3, "maxLength": 254, "description": "Where answers go."},
            },
            "required": ["to", "subject", "text"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    self_contained=True,
    timeout_s=30.0,
    parallel_safe=False,
    needs_approval=True,
    effect=Effect.ONCE,
    called_for_by=(
        r"[^\s@]+@[^\s@]+\.\w",
        r"\be-?mail|\bmail(?:s|ing|en|e|t)?\b|\bsend\b",
        r"\bschick|\bsende\b|\bsenden\b",
        r"courriel|\benvo(?:ie|y)",
        r"\bcorreo|\benv[ií]a|\bmanda",
        r"posta elettronica|\binvia",
        r"\bstuur|wyślij|\bpocztą",
        r"письм|\bпочт|имейл|отправь|отправить|пошли|надішли|\bлиста\b",
        r"e-posta|gönder",
        r"邮件|郵件|发给|发送|メール|送って|메일|보내|بريد|أرسل",
    ),
)
NEEDS = "set GROUNDWORK_SMTP_HOST to a mail server, and GROUNDWORK_SMTP_FROM"
PREPARING_TIMEOUT_S = 12.0
"""For everything before the text: its end is certain, so it is not worth a long wait."""
HANDING_OVER_TIMEOUT_S = 15.0
"""For the answer to the text. Both times together are less than the policy's: this module has to say what became of the text."""
PARTING_TIMEOUT_S = 1.0
_REFUSAL = 400
"""Replies from here on are refusals (RFC 5321, 4.2.1)."""
_USUAL_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_SAID_CHARACTERS_MAX = 200


class EmailNotSent(ToolError):
    """The mail server could not be asked."""

    reason = "EMAIL_NOT_SENT"


class EmailRefused(ToolError):
    """The mail server, or a rule of this installation, does not take the e-mail."""

    reason = "EMAIL_REFUSED"


def is_available(settings: ToolsSettings) -> bool:
    """Whether the operator has named a mail server."""
    return bool(settings.smtp_host)


async def send_email(
    to: list[str], subject: str, text: str, cc: Iterable[str] = (), reply_to: str = "", *, context: ToolContext
) -> ToolOutput:
    """Message id and recipients. Raises EmailRefused, EmailNotSent and CallInDoubt."""
    settings = context.settings
    if not is_available(settings):
        raise EmailNotSent(
            "no mail server is set; the operator names one in GROUNDWORK_SMTP_HOST", reason="EMAIL_NOT_SET_UP"
        )
    message = EmailMessage(policy=SMTP.clone(cte_type="7bit"))
    message["From"] = sender = parse_sender(settings.smtp_from)
    message["To"] = first = _unique(map(_address, to))
    recipients = _unique([*first, *map(_address, cc)])
    if copies := recipients[len(first) :]:
        message["Cc"] = copies
    _check_recipients(recipients, settings)
    if reply_to:
        message["Reply-To"] = _address(reply_to)
    message["Subject"] = _one_line(subject)
    message["Date"] = context.now()
    message["Message-ID"] = message_id = f"<{context.outward_id()}@{sender.domain}>"
    message.set_content(text)
    await _send(settings, sender.addr_spec, [address.addr_spec for address in recipients], message.as_bytes())
    return ToolOutput(
        {"message_id": message_id, "recipients": [address.addr_spec for address in recipients]},
        f"Sent to {', '.join(address.addr_spec for address in recipients)}",
    )


def _address(text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as error:
        raise EmailRefused(str(error), reason="BAD_ADDRESS") from error


def _unique(addresses: Iterable[Address]) -> list[Address]:
    """Each once, in the spelling that stands first."""
    unique: dict[str, Address] = {}
    for address in addresses:
        unique.setdefault(address.addr_spec.lower(), address)
    return list(unique.values())


def _check_recipients(recipients: list[Address], settings: ToolsSettings) -> None:
    if len(recipients) > RECIPIENTS_MAX:
        raise EmailRefused(f"{len(recipients)} recipients; at most {RECIPIENTS_MAX}", reason="TOO_MANY_RECIPIENTS")
    listed = settings.smtp_recipient_domains
    others = [address.addr_spec for address in recipients if listed and not name_is_listed(address.domain, listed)]
    if others:
        raise EmailRefused(
            f"this installation does not write to {', '.join(others)}; it writes to addresses at {', '.join(listed)}",
            reason="RECIPIENT_NOT_ALLOWED",
        )


def _one_line(subject: str) -> str:
    """A line break in a subject would begin another header."""
    if not subject.isprintable():
        raise EmailRefused("the subject must be one line of printable characters", reason="BAD_SUBJECT")
    return subject


async def _send(settings: ToolsSettings, sender: str, recipients: list[str], message: bytes) -> None:
    client = await _client(settings, sender)
    try:
        try:
            async with asyncio.timeout(PREPARING_TIMEOUT_S):
                await _prepare(client, sender, recipients)
        except aiosmtplib.SMTPAuthenticationError as error:
            raise _not_sent(
                settings, "it refuses the login; an operator checks GROUNDWORK_SMTP_USER and its password"
            ) from error
        except aiosmtplib.SMTPResponseException as error:
            raise _refused(error) from error
        except (aiosmtplib.SMTPException, OSError) as error:  # a TimeoutError is an OSError
            raise _not_sent(settings, str(error) or "it does not answer in time") from error
        await _hand_over(client, message)
    finally:
        client.close()


async def _client(settings: ToolsSettings, sender: str) -> aiosmtplib.SMTP:
    encrypted = settings.smtp_tls != "none"
    return aiosmtplib.SMTP(
        hostname=settings.smtp_host,
        port=settings.smtp_port or _USUAL_PORTS[settings.smtp_tls],
        username=settings.smtp_user or None,
        password=settings.smtp_password.get_secret_value() or None,
        use_tls=settings.smtp_tls == "tls",
        start_tls=settings.smtp_tls == "starttls",
        tls_context=await asyncio.to_thread(_trust, settings) if encrypted else None,
        local_hostname=sender.rpartition("@")[2],  # else it asks the resolver for this machine's name, and blocks
        timeout=PREPARING_TIMEOUT_S,
    )


def _trust(settings: ToolsSettings) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=settings.smtp_ca_file)
    except (OSError, ssl.SSLError) as error:
        raise EmailNotSent(
            "the certificates in GROUNDWORK_SMTP_CA_FILE cannot be read; an operator puts it right",
            reason="EMAIL_NOT_SET_UP",
        ) from error


async def _prepare(client: aiosmtplib.SMTP, sender: str, recipients: list[str]) -> None:
    """Up to the text. Nothing is sent when it fails."""
    await client.connect()
    await client.mail(sender)
    refused = []
    for recipient in recipients:
        try:
            await client.rcpt(recipient)
        except aiosmtplib.SMTPRecipientRefused as error:
            refused.append(f"{recipient} ({_said(error)})")
    if refused:
        raise EmailRefused(
            f"the mail server refused {', '.join(refused)}, so nothing was sent to anybody; send it without them, or to others",
            reason="RECIPIENT_REFUSED",
        )


async def _hand_over(client: aiosmtplib.SMTP, message: bytes) -> None:
    """From the command DATA on, all but a refusal leaves open whether the server has taken the text (RFC 5321, 4.2.5 and 6.1)."""
    try:
        async with asyncio.timeout(HANDING_OVER_TIMEOUT_S):
            await client.data(message, timeout=HANDING_OVER_TIMEOUT_S)
    except aiosmtplib.SMTPDataError as error:
        raise (_refused(error) if error.code >= _REFUSAL else _in_doubt(_said(error))) from error
    except (aiosmtplib.SMTPException, OSError) as error:
        raise _in_doubt(str(error) or "no answer in time") from error
    with suppress(aiosmtplib.SMTPException, OSError):  # it is sent: how they part does not matter
        await client.quit(timeout=PARTING_TIMEOUT_S)


def _in_doubt(why: str) -> CallInDoubt:
    return CallInDoubt(
        f"the e-mail was handed to the mail server, which did not say whether it took it ({why[:_SAID_CHARACTERS_MAX]}): it may "
        "have been sent. It is not sent again; before anybody sends it anew, ask the recipients, or have an operator look into the "
        "mail server's log"
    )


def _refused(error: aiosmtplib.SMTPResponseException) -> EmailRefused:
    return EmailRefused(f"the mail server refused the e-mail, and nothing was sent: {_said(error)}")


def _not_sent(settings: ToolsSettings, why: str) -> EmailNotSent:
    return EmailNotSent(f"the e-mail was not sent: mail server {settings.smtp_host}: {why[:_SAID_CHARACTERS_MAX]}")


def _said(error: aiosmtplib.SMTPResponseException) -> str:
    return f"{error.code} {' '.join(error.message.split())}"[:_SAID_CHARACTERS_MAX]
