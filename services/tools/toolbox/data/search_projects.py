"""Finds projects in the operator's curated records, by meaning and by words."""

from typing import Any

from services.tools.context import ToolContext
from services.tools.models import Policy, ToolOutput
from services.tools.passages.findings import check_query
from services.tools.projects.records import NEEDS_RECORDS, PROJECT_WORDS
from services.tools.projects.searching import FoundRecord
from services.tools.settings import ToolsSettings

TOP_K_MAX = 20

SCHEMA = {
    "type": "function",
    "function": {
        "name": "search_projects",
        "description": (
            "Finds projects that fit a question, by meaning and by words, in the curated records of projects. "
            "get_project_details has the whole record of one."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "What is looked for, in plain words, for example 'search engines in Python'.",
                    "minLength": 1,
                    "maxLength": 1000,
                },
                "top_k": {
                    "type": "integer",
                    "description": "Most projects to return. Default: 5.",
                    "minimum": 1,
                    "maximum": TOP_K_MAX,
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=5.0,
    called_for_by=PROJECT_WORDS,
)
NEEDS = NEEDS_RECORDS


def is_available(settings: ToolsSettings) -> bool:
    """Whether there are records."""
    return settings.tools_records_file is not None


async def search_projects(query: str, context: ToolContext, top_k: int = 5) -> ToolOutput:
    """Projects, best first, each with how it was found; `degraded` says what the search had to do without."""
    check_query(query)
    found = await context.services.records.search(query, top_k, context.services.models)
    content: dict[str, Any] = {"projects": [_described(hit) for hit in found.hits]}
    if found.degraded:
        content["degraded"] = list(found.degraded)
    if found.hits:
        said = f"{len(found.hits)} projects fit: {', '.join(hit.record.name for hit in found.hits)}."
    else:
        said = content["message"] = "No project fits; portfolio lists all of them."
    return ToolOutput(content, " ".join((said, *found.degraded)))


def _described(hit: FoundRecord) -> dict[str, Any]:
    described: dict[str, Any] = {
        **hit.record.brief(),
        "found_by": "words" if hit.by_words else "meaning",
    }
    if hit.similarity is not None:
        described["similarity"] = round(hit.similarity, 3)
    return described
