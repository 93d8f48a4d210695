"""Chooses how to search for a query, by its shape and without a model: see kit.queries.shape."""

from collections.abc import Mapping
from typing import Any

from kit.queries.shape import route
from services.tools.models import Policy

SCHEMA = {
    "type": "function",
    "function": {
        "name": "router_select",
        "description": (
            "Says how to search for a query: lexical for exact words, codes and names, dense for the meaning of long or abstract "
            "questions, hybrid for both. The result is the strategy for search."
        ),
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string", "minLength": 1, "maxLength": 2000}},
            "required": ["query"],
            "additionalProperties": False,
        },
    },
}
CACHEABLE = True
POLICY = Policy(
    self_contained=True,
    worth=-1,
    called_for_by=(r"\b(?:lexical|dense|hybrid)\b[\w\s]{0,20}\bsearch|search strategy|suchstrategie",),
)


def router_select(query: str) -> dict[str, Any]:
    """The strategy, and the reasons for it."""
    chosen = route(query)
    return {"strategy": chosen.strategy, "reasons": list(chosen.reasons)}


def summarise(content: Mapping[str, Any]) -> str:
    """The strategy with its reasons."""
    return f"{content['strategy'].capitalize()} search: {'; '.join(content['reasons'])}."
