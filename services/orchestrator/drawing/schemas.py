"""What a model fills in for each form, and what the artefacts hold."""

from collections.abc import Mapping
from typing import Any

from services.orchestrator.drawing.forms import CHARTS, DIAGRAMS, Form

Schema = Mapping[str, Any]
CHART, DIAGRAM, TIMELINE, TABLE, SIDE_BY_SIDE, OUTLINE = (
    "chart",
    "diagram",
    "timeline",
    "table",
    "side_by_side",
    "outline",
)
"""Kinds of artefacts."""
_TEXT: Schema = {"type": "string"}
_SOURCE: Schema = {"type": "integer", "minimum": 1}


def _object(**properties: Any) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Any, most: int = 0, least: int = 0) -> Schema:
    found: dict[str, Any] = {"type": "array", "items": items}
    if least:
        found["minItems"] = least
    return found | {"maxItems": most} if most else found


WHICH_FORM = _object(form={"type": "string", "enum": [form.value for form in Form if form is not Form.OUTLINE]})
"""What a model says where the message leaves the form open."""
_POINT = _object(series=_TEXT, label=_TEXT, value={"type": "number"}, source=_SOURCE)
_FILLED_CHART = _object(title=_TEXT, unit=_TEXT, points=_list(_POINT, 60, 1))
_FILLED_TABLE = _object(
    title=_TEXT,
    columns=_list(_TEXT, 8, 2),
    rows=_list(_object(cells=_list(_object(text=_TEXT, source=_SOURCE), 8, 2)), 30, 1),
)
_FILLED_TIMELINE = _object(title=_TEXT, events=_list(_object(when=_TEXT, what=_TEXT, source=_SOURCE), 30, 1))
_EDGE = {"from": _TEXT, "to": _TEXT, "label": _TEXT, "source": _SOURCE}
_FILLED_DIAGRAM = _object(
    title=_TEXT,
    nodes=_list(_object(id=_TEXT, label=_TEXT, members=_list(_TEXT, 8), source=_SOURCE), 24, 1),
    edges=_list(_object(**_EDGE), 40),
)
_FILLED_SIDES = _object(
    title=_TEXT, rows=_list(_object(topic=_TEXT, sides=_list(_object(text=_TEXT, source=_SOURCE), 4, 1)), 12, 1)
)


def filled_schema(form: Form) -> Schema:
    """What a model fills in."""
    if form in CHARTS:
        return _FILLED_CHART
    if form in DIAGRAMS:
        return _FILLED_DIAGRAM
    return {Form.TIMELINE: _FILLED_TIMELINE, Form.SIDE_BY_SIDE: _FILLED_SIDES}.get(form, _FILLED_TABLE)


_LEFT_OUT = _list(_TEXT)
_NUMBER_OR_NONE = {"type": ["number", "null"]}
_TEXT_OR_NONE = {"type": ["string", "null"]}
ARTEFACTS: Mapping[str, Schema] = {
    CHART: _object(
        form={"enum": [form.value for form in CHARTS]},
        unit=_TEXT,
        labels=_list(_TEXT, least=1),
        series=_list(_object(name=_TEXT, values=_list(_NUMBER_OR_NONE)), least=1),
        left_out=_LEFT_OUT,
    ),
    DIAGRAM: _object(
        form={"enum": [form.value for form in DIAGRAMS]},
        nodes=_list(_object(id=_TEXT, label=_TEXT, members=_list(_TEXT)), least=1),
        edges=_list(_object(**{"from": _TEXT, "to": _TEXT, "label": _TEXT})),
        mermaid=_TEXT,
        left_out=_LEFT_OUT,
    ),
    TIMELINE: _object(events=_list(_object(when=_TEXT, what=_TEXT), least=1), mermaid=_TEXT, left_out=_LEFT_OUT),
    SIDE_BY_SIDE: _object(
        documents=_list(_TEXT, least=1),
        rows=_list(_object(topic=_TEXT, texts=_list(_TEXT_OR_NONE)), least=1),
        left_out=_LEFT_OUT,
    ),
    OUTLINE: _object(lines=_list(_object(level={"type": "integer"}, text=_TEXT), least=1), left_out=_LEFT_OUT),
}
"""The kinds that the agent brings, besides `table`."""
