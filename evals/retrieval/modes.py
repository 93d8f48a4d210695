"""The ways of searching that are compared, and the words of the command line for more of them."""

import json

from evals.datasets.models import Mode
from evals.errors import EvaluationError

DEFAULT = "default"
"""What a user gets who sends nothing but the query."""

_BASES: dict[str, dict[str, object]] = {
    "lexical": {"strategy": "lexical"},
    "dense": {"strategy": "dense"},
    "rrf": {"strategy": "hybrid", "fusion": "rrf"},
    "convex": {"strategy": "hybrid", "fusion": "convex"},
}


def standard_modes() -> list[Mode]:
    """The default, each engine and each fusion without reranking, then each with it."""
    return [
        Mode(DEFAULT),
        *(Mode(name, {**options, "rerank": "off"}) for name, options in _BASES.items()),
        *(Mode(f"{name} + rerank", {**options, "rerank": "on"}) for name, options in _BASES.items()),
    ]


def parse_mode(text: str) -> Mode:
    """`NAME={"option": value, …}` with options of `POST /v1/search`, or the name of a standard mode. Raises EvaluationError."""
    name, equals, options = text.partition("=")
    if not equals:
        known = {mode.name: mode for mode in standard_modes()}
        if name not in known:
            raise EvaluationError(f'there is no mode {name!r}; use one of {", ".join(known)}, or NAME={{"option": …}}')
        return known[name]
    try:
        parsed = json.loads(options)
    except json.JSONDecodeError as error:
        raise EvaluationError(f"the options of mode {name!r} are not JSON: {error}") from error
    if not name or not isinstance(parsed, dict):
        raise EvaluationError(f"{text!r} is not NAME={{…}} with a JSON object of options of POST /v1/search")
    return Mode(name, parsed)
