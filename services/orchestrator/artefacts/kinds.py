"""The kinds of artefacts that all clients know, and the check of an artefact before anybody sees it. An agent may make kinds of
its own: it brings their schemas."""

import json
import re
from collections.abc import Mapping
from typing import Any

from services.orchestrator.answering.blocks import violation
from services.orchestrator.log.events import Artefact

Schema = Mapping[str, Any]
TABLE = "table"
LONGEST_BYTES = 200 * 1024
"""Of one artefact as JSON with its citations: it stands in two events of the log and in a message of the thread."""
_CELL = {"type": ["string", "number", "boolean", "null"]}
_COMMON: Mapping[str, Schema] = {
    TABLE: {
        "type": "object",
        "properties": {
            "columns": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "rows": {"type": "array", "items": {"type": "array", "items": _CELL}},
        },
        "required": ["columns", "rows"],
        "additionalProperties": False,
    },
}
_STEP = re.compile(r"/((?:[^~/]|~[01])*)")


def problem_with(artefact: Artefact, own: Mapping[str, Schema]) -> str:
    """What is wrong with an artefact of an agent that has these kinds of its own, as a sentence; empty when nothing is."""
    schema = own.get(artefact.kind) or _COMMON.get(artefact.kind)
    if schema is None:
        return f"The kind {artefact.kind!r} has no schema: put one into the agent's artefacts."
    body = artefact.body or {}
    if wrong := violation(body, schema):
        return wrong
    known = {each.number for each in artefact.citations}
    for item in artefact.items:
        if not points_into(body, item.path):
            return f"The item {item.path!r} points at nothing."
        if not set(item.citations) <= known:
            return f"The item {item.path!r} cites a passage that the artefact does not have."
    size = len(json.dumps(body, ensure_ascii=False).encode()) + sum(len(each.text) for each in artefact.citations)
    return f"It is too long: {size} bytes, and {LONGEST_BYTES} are the most." if size > LONGEST_BYTES else ""


def points_into(body: Any, path: str) -> bool:
    """Whether a JSON Pointer (RFC 6901) names a part of the body."""
    steps = _STEP.findall(path)
    if "".join(f"/{step}" for step in steps) != path:
        return False
    for step in (each.replace("~1", "/").replace("~0", "~") for each in steps):
        if isinstance(body, Mapping) and step in body:
            body = body[step]
        elif isinstance(body, list | tuple) and step.isdigit() and int(step) < len(body):
            body = body[int(step)]
        else:
            return False
    return True
