"""What the tools of a mailbox have in common."""

from services.tools.connections.mail import Mailbox
from services.tools.connections.records import MAIL, Connection, not_connected
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


async def opened(context: ToolContext) -> tuple[Mailbox, Connection]:
    """The mailbox, and the connection of the call's caller. Raises ToolError."""
    services, caller = context.services, context.caller
    if services.mail is None or services.connections is None:
        raise not_connected(MAIL)
    return services.mail, await services.connections.usable(caller.tenant_id, caller.subject, MAIL)
