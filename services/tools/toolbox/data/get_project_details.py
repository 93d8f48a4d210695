"""The whole record of a project."""

import asyncio

from services.tools.context import ToolContext
from services.tools.errors import ToolError
from services.tools.models import Policy, ToolOutput
from services.tools.projects.records import NEEDS_RECORDS, PROJECT_WORDS
from services.tools.settings import ToolsSettings

SCHEMA = {
    "type": "function",
    "function": {
        "name": "get_project_details",
        "description": (
            "Gives the whole curated record of one project by its id: description, technologies, links, year, role. "
            "search_projects and portfolio show ids."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "project_id": {
                    "type": ["string", "integer"],
                    "description": "Id of the project.",
                    "minLength": 1,
                    "maxLength": 200,
                }
            },
            "required": ["project_id"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=2.0,
    called_for_by=PROJECT_WORDS,
)
NEEDS = NEEDS_RECORDS


def is_available(settings: ToolsSettings) -> bool:
    """Whether there are records."""
    return settings.tools_records_file is not None


async def get_project_details(project_id: str | int, context: ToolContext) -> ToolOutput:
    """All fields that the record has. An id that is not known is an error that names ids that are."""
    records = context.services.records.records
    record = records.get(str(project_id))
    if record is None:
        alike = await asyncio.to_thread(records.near, str(project_id))
        near = ", ".join(f"{each.id} ({each.name})" for each in alike)
        raise ToolError(
            f"there is no project with the id {str(project_id)!r:.100}; "
            + (f"ids near it are: {near}" if near else "there are no records of projects here"),
            reason="PROJECT_NOT_FOUND",
        )
    return ToolOutput(record.model_dump(mode="json", exclude_defaults=True), f"The record of {record.name}.")
