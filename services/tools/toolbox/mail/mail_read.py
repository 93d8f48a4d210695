"""Reads a message of a mailbox with its attachments, as the reader of uploaded files does. Its text are passages to cite."""

from services.tools.connections.records import MAIL
from services.tools.context import ToolContext
from services.tools.models import Policy, ToolOutput
from services.tools.toolbox._reading import FROM_PASSAGE, LOOK_FOR, read_file, shown_page
from services.tools.toolbox.mail import _asking
from services.tools.toolbox.mail._asking import CALLED_FOR_BY, TIMEOUT_S, ask_mailbox
from services.tools.web.reading import FILE_TIMEOUT_S

SCHEMA = {
    "type": "function",
    "function": {
        "name": "mail_read",
        "description": (
            "Reads a message of the connected mailbox, with the text of its attachments, as passages to cite. It stays "
            "unread there."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "message": {
                    "type": "string",
                    "description": "Its id, as mail_search shows it.",
                    "minLength": 3,
                    "maxLength": 300,
                },
                "look_for": LOOK_FOR,
                "from_passage": FROM_PASSAGE,
            },
            "required": ["message"],
            "additionalProperties": False,
        },
    },
}
CONNECTION = MAIL
POLICY = Policy(timeout_s=TIMEOUT_S + FILE_TIMEOUT_S, called_for_by=CALLED_FOR_BY)
NEEDS = _asking.NEEDS
is_available = _asking.is_set_up


async def mail_read(message: str, look_for: str = "", from_passage: int = 0, *, context: ToolContext) -> ToolOutput:
    """The passages of the message that a model reads of one result. Raises ToolError."""
    asked = {"tenant_id": context.caller.tenant_id, "run": context.run_id}
    url, data = await ask_mailbox(context, lambda mailbox, connection: mailbox.read(message, connection, **asked))
    page = await read_file(url, "message.eml", data, context)
    return await shown_page(page, look_for, from_passage, context)
