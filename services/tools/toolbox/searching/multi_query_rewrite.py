"""Other wordings of a query, without a model: see kit.queries.rewriting. For when a search found little."""

from collections.abc import Mapping
from typing import Any

from kit.queries.rewriting import about, distinct, wordings
from services.tools.models import Policy

QUERIES_MAX = 6
SCHEMA = {
    "type": "function",
    "function": {
        "name": "multi_query_rewrite",
        "description": (
            "Gives other wordings of a search query, without those that would find the same. Use it when a search found too little."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 2000},
                "count": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": QUERIES_MAX,
                    "description": "How many at most. Default: 4.",
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    },
}
CACHEABLE = True
POLICY = Policy(
    self_contained=True,
    worth=-1,
    called_for_by=(
        r"\b(?:rewrite|rephrase|reword|paraphrase)|other wordings|umformulier|anders formulier",
        r"reformul|перефраз|переформул|换(?:个|种)说法|言い換え",
    ),
)
_ENOUGH = 2


def multi_query_rewrite(query: str, count: int = 4) -> dict[str, Any]:
    """Wordings, best first, without the query itself."""
    found = wordings(query)
    if len(found) < _ENOUGH:
        found = distinct([query, *found, *about(query)])[1:]
    return {"queries": found[:count]}


def summarise(content: Mapping[str, Any]) -> str:
    """The wordings."""
    return f"Other wordings: {'; '.join(content['queries'])}." if content["queries"] else "There is no other wording."
