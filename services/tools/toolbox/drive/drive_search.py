"""Finds files in Google Drive by their words, or lists a folder. drive_read reads one of them."""

from collections.abc import Mapping
from typing import Any

from services.tools.connections.drive import TIMEOUT_S, file_id_of
from services.tools.connections.records import DRIVE
from services.tools.context import ToolContext
from services.tools.errors import InvalidArguments
from services.tools.models import Policy, ToolOutput
from services.tools.toolbox.drive._asking import CALLED_FOR_BY, ask_drive

_NAME_CHARACTERS_MAX, _FIELD_CHARACTERS_MAX = 200, 500
SCHEMA = {
    "type": "function",
    "function": {
        "name": "drive_search",
        "description": (
            "Finds files in the connected Google Drive by words of their names and texts, or lists a folder. Without both it shows "
            "the newest files. drive_read reads one of them."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words of the file. Few words find more.", "maxLength": 200},
                "folder": {
                    "type": "string",
                    "description": "Only what lies directly in this folder: its id or address. `root` is the top folder.",
                    "maxLength": 500,
                },
                "top_k": {"type": "integer", "description": "Most files. Default: 20.", "minimum": 1, "maximum": 50},
            },
            "required": [],
            "additionalProperties": False,
        },
    },
}
CONNECTION = DRIVE
POLICY = Policy(timeout_s=TIMEOUT_S, called_for_by=CALLED_FOR_BY)


async def drive_search(query: str = "", folder: str = "", top_k: int = 20, *, context: ToolContext) -> ToolOutput:
    """The files with their ids, kinds and days. Raises ToolError."""
    if not query.isprintable():
        raise InvalidArguments("query must not have line breaks or other invisible characters")
    words, folder_id, tenant_id = query.strip(), file_id_of(folder) if folder else "", context.caller.tenant_id
    files, has_more = await ask_drive(
        context,
        lambda drive, connection: drive.list_files(
            words, folder_id, top_k, connection, tenant_id=tenant_id, run=context.run_id
        ),
    )
    found = [_described(each) for each in files]
    content: dict[str, object] = {"found": found}
    if has_more:
        content["more"] = "There are more files; use other words, or a folder."
    if not found:
        content["message"] = "Nothing was found. Try fewer words, or another folder."
    return ToolOutput(content, f"{len(found)} files found in Google Drive.")


def _described(file: Mapping[str, Any]) -> dict[str, Any]:
    known = {
        "file": str(file.get("id", "")),
        "name": str(file.get("name", ""))[:_NAME_CHARACTERS_MAX],
        "kind": str(file.get("mimeType", "")),  # as its owner has named it
        "changed_at": str(file.get("modifiedTime", "")),
        "size_bytes": str(file.get("size", "")),
        "url": str(file.get("webViewLink", "")),
    }
    return {name: value[:_FIELD_CHARACTERS_MAX] for name, value in known.items() if value}
