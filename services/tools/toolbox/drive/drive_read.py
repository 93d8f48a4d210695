"""Reads a file of Google Drive as the reader of uploaded files does; Google's own documents are exported first."""

from services.tools.connections.drive import TIMEOUT_S, file_id_of
from services.tools.connections.records import DRIVE
from services.tools.context import ToolContext
from services.tools.models import Policy, ToolOutput
from services.tools.toolbox._reading import FROM_PASSAGE, LOOK_FOR, read_file, shown_page
from services.tools.toolbox.drive._asking import CALLED_FOR_BY, ask_drive
from services.tools.web.reading import FILE_TIMEOUT_S

SCHEMA = {
    "type": "function",
    "function": {
        "name": "drive_read",
        "description": (
            "Reads a file of the connected Google Drive as passages to cite: Google's documents, sheets and slides, PDF, office "
            "files and text."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "file": {
                    "type": "string",
                    "description": "Its id, as drive_search shows it, or its address.",
                    "minLength": 3,
                    "maxLength": 500,
                },
                "look_for": LOOK_FOR,
                "from_passage": FROM_PASSAGE,
            },
            "required": ["file"],
            "additionalProperties": False,
        },
    },
}
CONNECTION = DRIVE
POLICY = Policy(timeout_s=2 * TIMEOUT_S + FILE_TIMEOUT_S, called_for_by=CALLED_FOR_BY)


async def drive_read(file: str, look_for: str = "", from_passage: int = 0, *, context: ToolContext) -> ToolOutput:
    """The passages of the file that a model reads of one result. Raises ToolError."""
    file_id, tenant_id = file_id_of(file), context.caller.tenant_id
    found = await ask_drive(
        context,
        lambda drive, connection: drive.read_file(file_id, connection, tenant_id=tenant_id, run=context.run_id),
    )
    page = await read_file(found.url, found.name, found.data, context)
    return await shown_page(page, look_for, from_passage, context)
