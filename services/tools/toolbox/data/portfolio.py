"""An overview of the operator's curated projects: lists, filters and counts."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from services.tools.context import ToolContext
from services.tools.models import Policy, ToolOutput
from services.tools.projects.records import NEEDS_RECORDS, PROJECT_WORDS, Record
from services.tools.settings import ToolsSettings

LIMIT_MAX = 100
_COUNTED_MAX = 40
"""Technologies and roles that are counted by name, the most common ones."""

SCHEMA = {
    "type": "function",
    "function": {
        "name": "portfolio",
        "description": (
            "Gives an overview of the curated projects: which there are, how many, with which technologies, of which years and "
            "roles. Can be narrowed by technology, years and role. search_projects answers questions about their content."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "technology": {
                    "type": "string",
                    "description": "Only projects with this technology, for example 'Python'.",
                    "minLength": 1,
                    "maxLength": 200,
                },
                "role": {
                    "type": "string",
                    "description": "Only projects whose role has these words.",
                    "minLength": 1,
                    "maxLength": 200,
                },
                "year_from": {"type": "integer", "description": "Only projects of this year or later."},
                "year_to": {"type": "integer", "description": "Only projects of this year or earlier."},
                "limit": {
                    "type": "integer",
                    "description": "Most projects to list; all that fit are counted. Default: 20.",
                    "minimum": 1,
                    "maximum": LIMIT_MAX,
                },
                "offset": {
                    "type": "integer",
                    "description": "Projects to leave out at the beginning of the list. Default: 0.",
                    "minimum": 0,
                },
            },
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=2.0,
    called_for_by=(*PROJECT_WORDS, r"portfolio|portafol|portefeuille|портфолио|作品集|ポートフォリオ|포트폴리오"),
)
NEEDS = NEEDS_RECORDS


def is_available(settings: ToolsSettings) -> bool:
    """Whether there are records."""
    return settings.tools_records_file is not None


async def portfolio(
    context: ToolContext,
    technology: str = "",
    role: str = "",
    year_from: int | None = None,
    year_to: int | None = None,
    limit: int = 20,
    offset: int = 0,
) -> ToolOutput:
    """The projects that fit, newest first, and counts over all that fit. Where none does: what there is to ask for."""
    every = context.services.records.records.all
    fitting = [
        record
        for record in every
        if _fits_years(record, year_from, year_to)
        and (not technology or any(_has_words(name, technology) for name in record.technologies))
        and (not role or _has_words(record.role, role))
    ]
    fitting.sort(key=lambda record: -(record.year or 0))
    listed = fitting[offset : offset + limit]
    content: dict[str, Any] = {
        "projects_in_all": len(every),
        "projects_that_fit": len(fitting),
        "projects": [record.brief() for record in listed],
        "not_listed": len(fitting) - len(listed),
        **_counts(fitting),
    }
    said = f"{len(fitting)} of {len(every)} projects fit." if len(fitting) < len(every) else f"{len(every)} projects."
    if not fitting and every:
        content["message"] = "No project fits; what there is stands under available."
        content["available"] = _counts(every)
    return ToolOutput(content, said)


def _fits_years(record: Record, year_from: int | None, year_to: int | None) -> bool:
    """A record without a year fits only where no year is asked for."""
    if record.year is None:
        return year_from is None and year_to is None
    return (year_from is None or record.year >= year_from) and (year_to is None or record.year <= year_to)


def _has_words(text: str, wanted: str) -> bool:
    """Whole words, whatever their case: "go" is not in "MongoDB", and "qdrant" is in "Qdrant Edge"."""
    return _words(wanted) <= _words(text)


def _words(text: str) -> set[str]:
    return {word.strip(".,;:()") for word in text.casefold().split()}


def _counts(records: Sequence[Record]) -> Mapping[str, Mapping[str, int]]:
    return {
        "by_technology": _most_common(name for record in records for name in record.technologies),
        "by_year": dict(sorted(Counter(str(record.year) for record in records if record.year).items(), reverse=True)),
        "by_role": _most_common(record.role for record in records if record.role),
    }


def _most_common(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(names).most_common(_COUNTED_MAX))
