"""Plans a search without a model: sub-queries, phrases and filters, ready for `search`. See kit.queries.planning."""

from collections.abc import Mapping, Sequence
from typing import Any

from kit.queries.planning import QUERIES_MAX, plan
from kit.queries.shape import route
from services.tools.models import Policy
from services.tools.toolbox.calculation.temporal_normalize import enclosing_dates, reference_moment

CHANNELS_MAX = 100
SCHEMA = {
    "type": "function",
    "function": {
        "name": "query_plan",
        "description": (
            f"Plans a search for a question: up to {QUERIES_MAX} queries, phrases that must or should be found, and filters by "
            "date and channel. queries, must_phrases, filters and strategy are arguments of search."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 2000, "description": "The person's question."},
                "timezone": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 64,
                    "description": "IANA time zone that 'last week' is meant in. Default: UTC.",
                },
                "reference_time": {
                    "type": "string",
                    "minLength": 10,
                    "maxLength": 40,
                    "description": "ISO 8601 time that 'last week' counts from. Default: now.",
                },
                "channels": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1, "maxLength": 256},
                    "maxItems": CHANNELS_MAX,
                    "description": "Names of channels that there are; those that the question names become a filter.",
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    self_contained=True,
    worth=-1,
    called_for_by=(r"\bplan\b[\w\s]{0,20}\b(?:search|quer)|search plan|suchplan|plane? die suche",),
)


def query_plan(
    query: str, timezone: str = "UTC", reference_time: str = "", channels: Sequence[str] = ()
) -> dict[str, Any]:
    """The plan, with the reasons for its strategy. Dates are from date_from on, up to and without date_to."""
    planned, chosen = plan(query, reference_moment(timezone, reference_time), channels), route(query)
    dates = {name: date for name, date in enclosing_dates(planned.periods).items() if date}
    return {
        "queries": planned.queries,
        "must_phrases": planned.must_phrases,
        "should_phrases": planned.should_phrases,
        "filters": {**dates, **({"channel": planned.channels} if planned.channels else {})},
        "strategy": chosen.strategy,
        "reasons": list(chosen.reasons),
    }


def summarise(content: Mapping[str, Any]) -> str:
    """What would be searched for, and how."""
    return f"Search for {'; '.join(content['queries'])} ({content['strategy']})."
