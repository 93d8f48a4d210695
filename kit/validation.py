"""What pydantic finds wrong with a value, in the words of somebody who set a variable or sent a request."""

import re
from collections.abc import Mapping
from typing import Any

_QUOTED = re.compile(r"'([^']*)'")
_SUBJECT = re.compile(r"^(?:Input|String|Value|Number|List|Dictionary|Set|Tuple) should ")
_PHRASES = (
    ("greater than or equal to", "at least"),
    ("less than or equal to", "at most"),
    ("a valid integer", "a whole number"),
    ("a valid number", "a number"),
    ("a valid boolean", "true or false"),
    ("a valid string", "text"),
    ("a valid list", "a list"),
    ("a valid dictionary or object to extract fields from", "an object"),
    ("a valid dictionary", "an object"),
    (" after validation", ""),
)


def expectation(problem: Mapping[str, Any]) -> str:
    """What is expected instead, from one entry of `ValidationError.errors()`: "it must be at least 1"."""
    kind, context = problem["type"], problem.get("ctx", {})
    if kind in {"literal_error", "enum"}:
        return f"it must be one of {', '.join(_QUOTED.findall(context['expected'])) or context['expected']}"
    if kind == "value_error":
        return str(context["error"])  # one of our own validators: its words are already for the user
    if kind == "extra_forbidden":
        return "there is nothing of this name"
    if kind == "missing":
        return "it is missing"
    text = str(problem["msg"]).partition(", ")[0]  # after the comma stands how the parser failed
    for theirs, ours in _PHRASES:
        text = text.replace(theirs, ours)
    return _SUBJECT.sub("it must ", text)
