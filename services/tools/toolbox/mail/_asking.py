"""What the tools of a mailbox have in common."""

from collections.abc import Callable, Coroutine
from typing import Any

from services.tools.connections.mail import Mailbox
from services.tools.connections.records import MAIL, Answer, Connection, not_connected
from services.tools.context import ToolContext
from services.tools.settings import ToolsSettings

TIMEOUT_S = 30.0
NEEDS = "set GROUNDWORK_TOOLS_MAIL_URL to a mail server, as imaps://imap.example.com"
CALLED_FOR_BY = (
    r"\be-?mails?\b|\bmail(?:s|box)?\b|\binbox\b",
    r"\bposteingang|\bpostfach|courriel|correo|\bposta\b|письм|\bпочт|邮件|郵件|メール|메일|بريد|דואר|e-posta",
)


def is_set_up(settings: ToolsSettings) -> bool:
    """Whether the operator has named a mail server."""
    return bool(settings.tools_mail_url)


async def ask_mailbox(
    context: ToolContext, ask: Callable[[Mailbox, Connection], Coroutine[Any, Any, Answer]]
) -> Answer:
    """Asks the mailbox by the connection of the call's caller. Raises ToolError."""
    mailbox, connections = context.services.mail, context.services.connections
    if mailbox is None or connections is None:
        raise not_connected(MAIL)
    return await connections.ask(context.caller, MAIL, lambda connection: ask(mailbox, connection))
