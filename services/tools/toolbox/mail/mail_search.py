"""Finds messages in a mailbox by words, people, folder and day. What it finds are passages that an answer may cite."""

from datetime import date

from services.tools.adapters.http.web_passages import result_passages
from services.tools.connections.mail import MailHead, MailQuery
from services.tools.connections.records import MAIL
from services.tools.context import ToolContext
from services.tools.errors import InvalidArguments
from services.tools.models import Policy, ToolOutput
from services.tools.passages.rendering import all_described, fitted
from services.tools.toolbox.mail import _asking
from services.tools.toolbox.mail._asking import CALLED_FOR_BY, TIMEOUT_S, ask_mailbox
from services.tools.web.searching import Result

_WORDS_MAX = 8
_DAY = {"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$", "maxLength": 10}
_PERSON = {"type": "string", "minLength": 1, "maxLength": 200}
SCHEMA = {
    "type": "function",
    "function": {
        "name": "mail_search",
        "description": (
            "Finds messages in the connected mailbox, newest first: who wrote what to whom and when. mail_read reads one of them. "
            "Without a query it shows the newest. It changes nothing there."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "Words that stand in the message, all of them. Few words find more.",
                    "maxLength": 200,
                },
                "sender": {**_PERSON, "description": "Part of the sender's name or address."},
                "recipient": {**_PERSON, "description": "Part of a recipient's name or address."},
                "subject": {**_PERSON, "description": "Part of the subject."},
                "since": {**_DAY, "description": "Received on this day or later, as 2026-01-31."},
                "before": {**_DAY, "description": "Received before this day."},
                "unread": {"type": "boolean", "description": "Only messages that nobody has read. Default: all."},
                "folder": {
                    "type": "string",
                    "description": "Default: INBOX. `?` lists the folders.",
                    "minLength": 1,
                    "maxLength": 200,
                },
                "top_k": {"type": "integer", "description": "Most messages. Default: 10.", "minimum": 1, "maximum": 20},
            },
            "required": [],
            "additionalProperties": False,
        },
    },
}
CONNECTION = MAIL
POLICY = Policy(timeout_s=TIMEOUT_S, called_for_by=CALLED_FOR_BY)
NEEDS = _asking.NEEDS
is_available = _asking.is_set_up


async def mail_search(
    query: str = "",
    sender: str = "",
    recipient: str = "",
    subject: str = "",
    since: str = "",
    before: str = "",
    unread: bool = False,
    folder: str = "INBOX",
    top_k: int = 10,
    *,
    context: ToolContext,
) -> ToolOutput:
    """The heads of the newest messages that fit. Raises ToolError."""
    words = query.split()
    if len(words) > _WORDS_MAX:
        raise InvalidArguments(f"query has at most {_WORDS_MAX} words; all of them must stand in the message")
    if not all(each.isprintable() for each in (query, sender, recipient, subject, folder)):
        raise InvalidArguments("the arguments must not have line breaks or other invisible characters")
    asked = {"tenant_id": context.caller.tenant_id, "run": context.run_id}
    if folder == "?":
        names = await ask_mailbox(context, lambda mailbox, connection: mailbox.folders(connection, **asked))
        return ToolOutput({"folders": list(names)}, f"{len(names)} folders in the mailbox.")
    wanted = MailQuery(words, sender, recipient, subject, _day(since), _day(before), unread, folder, top_k)
    count, heads = await ask_mailbox(context, lambda mailbox, connection: mailbox.search(wanted, connection, **asked))
    results = [Result(head.url, head.subject or "(no subject)", _said(head), head.date[:10]) for head in heads]
    shown = fitted(result_passages(results, context.now()), context.settings.tools_text_tokens)
    found = [
        {"message": head.message_id, "unread": head.is_unread, **described}
        for head, described in zip(heads, all_described(shown), strict=False)
    ]
    content: dict[str, object] = {"found_in_all": count, "found": found}
    if not found:
        content["message"] = "Nothing was found. Try fewer words, or another folder."
    return ToolOutput(content, f"{count} messages found in {folder}.", tuple(shown))


def _day(said: str) -> date | None:
    try:
        return date.fromisoformat(said) if said else None
    except ValueError as error:
        raise InvalidArguments(f"{said} is no day; write it as 2026-01-31") from error


def _said(head: MailHead) -> str:
    lines = [
        ("From", head.sender),
        ("To", ", ".join(head.recipients)),
        ("Date", head.date),
        ("Subject", head.subject),
    ]
    return "\n".join(f"{name}: {value}" for name, value in lines if value)
