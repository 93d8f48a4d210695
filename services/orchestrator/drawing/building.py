"""Builds drawings from what a model or rules have filled in: each part is looked up in the passage that it names. A part that does
not stand there is left out, and said."""

from collections.abc import Mapping, Sequence
from typing import Any

from services.orchestrator.answering.citations import without_marks
from services.orchestrator.drawing import mermaid, schemas
from services.orchestrator.drawing.forms import CHARTS, DIAGRAMS, Form
from services.orchestrator.drawing.parts import Drawing, Part, Proofs
from services.orchestrator.log.events import Evidence

Filled = Mapping[str, Any]


def build(form: Form, filled: Filled, evidence: Sequence[Evidence]) -> Drawing | None:
    """The drawing of the parts that their passages carry; None where too few are left to draw anything."""
    proofs = Proofs(evidence)
    if form in CHARTS:
        return _chart(form, filled, proofs)
    if form in DIAGRAMS:
        return _diagram(form, filled, proofs)
    if form is Form.TIMELINE:
        return _timeline(filled, proofs)
    if form is Form.SIDE_BY_SIDE:
        return _sides(filled, proofs, {each.number: each for each in evidence})
    return _table(filled, proofs)


def _chart(form: Form, filled: Filled, proofs: Proofs) -> Drawing | None:
    labels: list[str] = []
    series: dict[str, dict[str, float]] = {}
    proved: dict[tuple[str, str], tuple[int, int, int]] = {}
    left_out = list(filled.get("cut", ()))
    for point in filled["points"]:
        name, label, value = _text(point["series"]), _text(point["label"]), point["value"]
        found = proofs.of_number(float(value), f"{label} {name}", point["source"])
        if found is None:
            left_out.append(f"{_named(name, label)}: {_number(value)} stands in no passage with these words.")
            continue
        if (name, label) in proved:
            continue
        if label not in labels:
            labels.append(label)
        series.setdefault(name, {})[label] = value
        proved[name, label] = (point["source"], *found)
    if not labels or (form is Form.RADAR and len(labels) < 3) or len(proved) < 2:
        return None
    unit = _text(filled["unit"])
    body = {
        "form": form.value,
        "unit": unit,
        "labels": labels,
        "series": [{"name": name, "values": [values.get(each) for each in labels]} for name, values in series.items()],
        "left_out": left_out,
    }
    parts = [
        Part(
            f"/series/{row}/values/{column}",
            f"{_named(name, label)}: {_number(series[name][label])}",
            *proved[name, label],
        )
        for row, name in enumerate(series)
        for column, label in enumerate(labels)
        if (name, label) in proved
    ]
    return Drawing(schemas.CHART, form, _text(filled["title"]), body, parts, left_out)


def _table(filled: Filled, proofs: Proofs) -> Drawing | None:
    columns = [_text(each) for each in filled["columns"]]
    rows: list[list[str | None]] = []
    parts: list[Part] = []
    left_out: list[str] = list(filled.get("cut", ()))
    for row in filled["rows"]:
        cells: list[str | None] = []
        proved = []
        name = _text(row["cells"][0]["text"]) if row["cells"] else ""
        for at, column in enumerate(columns):
            cell = row["cells"][at] if at < len(row["cells"]) else None
            text = _text(cell["text"]) if cell else ""
            found = proofs.of_words(text, cell["source"]) if cell and text else None
            if cell and found:
                path, line = f"/rows/{len(rows)}/{at}", f"{_named(name if at else '', column)}: {text}"
                proved.append(Part(path, line, cell["source"], *found))
            elif text:
                left_out.append(f"{_named(name, column)}: “{text}” stands in no cited passage.")
            cells.append(text if found else None)
        if proved:
            rows.append(cells)
            parts += proved
    if not rows:
        return None
    return Drawing(
        schemas.TABLE, Form.TABLE, _text(filled["title"]), {"columns": columns, "rows": rows}, parts, left_out
    )


def _timeline(filled: Filled, proofs: Proofs) -> Drawing | None:
    events: list[dict[str, str]] = []
    parts: list[Part] = []
    left_out: list[str] = list(filled.get("cut", ()))
    for event in filled["events"]:
        when, what = _text(event["when"]), _text(event["what"])
        found = proofs.of_words(f"{when} {what}", event["source"])
        if found is None:
            left_out.append(f"{when}: “{what}” stands in no cited passage.")
            continue
        parts.append(Part(f"/events/{len(events)}", f"{when}: {what}", event["source"], *found))
        events.append({"when": when, "what": what})
    if not events:
        return None
    title = _text(filled["title"])
    body = {"events": events, "mermaid": mermaid.timeline(title, events), "left_out": left_out}
    return Drawing(schemas.TIMELINE, Form.TIMELINE, title, body, parts, left_out)


def _diagram(form: Form, filled: Filled, proofs: Proofs) -> Drawing | None:
    nodes: dict[str, dict[str, Any]] = {}
    edges: list[dict[str, str]] = []
    parts: list[Part] = []
    left_out: list[str] = list(filled.get("cut", ()))
    for node in filled["nodes"]:
        label = _text(node["label"])
        found = proofs.of_words(label, node["source"])
        if found is None or node["id"] in nodes:
            left_out += [] if node["id"] in nodes else [f"“{label}” stands in no cited passage."]
            continue
        members = [_text(each) for each in node.get("members", ()) if proofs.of_words(_text(each), node["source"])]
        parts.append(Part(f"/nodes/{len(nodes)}", label, node["source"], *found))
        nodes[node["id"]] = {"id": node["id"], "label": label, "members": members}
    for edge in filled["edges"]:
        ends = nodes.get(edge["from"]), nodes.get(edge["to"])
        if ends[0] is None or ends[1] is None:
            continue
        names = f"{ends[0]['label']} → {ends[1]['label']}"
        label = _text(edge["label"])
        found = proofs.of_words(f"{ends[0]['label']} {ends[1]['label']}", edge["source"])
        if label and proofs.of_words(label, edge["source"]) is None:
            label = ""
        if found is None:
            left_out.append(f"The line {names} stands in no cited passage.")
            continue
        said = f"{names}: {label}" if label else names
        parts.append(Part(f"/edges/{len(edges)}", said, edge["source"], *found))
        edges.append({"from": edge["from"], "to": edge["to"], "label": label})
    if len(nodes) < 2 or not edges:
        return None
    shown = list(nodes.values())
    source = mermaid.diagram(form, shown, edges)
    body = {"form": form.value, "nodes": shown, "edges": edges, "mermaid": source, "left_out": left_out}
    return Drawing(schemas.DIAGRAM, form, _text(filled["title"]), body, parts, left_out)


def _sides(filled: Filled, proofs: Proofs, evidence: Mapping[int, Evidence]) -> Drawing | None:
    """Documents as columns, in the order in which they are first cited."""
    documents: dict[str, str] = {}
    rows: list[tuple[str, dict[str, str]]] = []
    proved: list[tuple[int, str, int, int, int]] = []
    left_out = []
    for row in filled["rows"]:
        sides: dict[str, str] = {}
        for side in row["sides"]:
            text, passage = _text(side["text"]), evidence.get(side["source"])
            found = proofs.of_words(text, side["source"]) if text else None
            if passage is None or found is None:
                left_out += [f"{_text(row['topic'])}: “{text}” stands in no cited passage."] if text else []
                continue
            documents.setdefault(passage.document_id, passage.document_name)
            if passage.document_id not in sides:
                sides[passage.document_id] = text
                proved.append((len(rows), passage.document_id, side["source"], *found))
        if sides:
            rows.append((_text(row["topic"]), sides))
    if len(documents) < 2:
        return None
    order = list(documents)
    body = {
        "documents": list(documents.values()),
        "rows": [{"topic": topic, "texts": [sides.get(each) for each in order]} for topic, sides in rows],
        "left_out": left_out,
    }
    parts = [
        Part(
            f"/rows/{row}/texts/{order.index(document)}",
            f"{documents[document]}: {rows[row][1][document]}",
            source,
            start,
            end,
        )
        for row, document, source, start, end in proved
    ]
    return Drawing(schemas.SIDE_BY_SIDE, Form.SIDE_BY_SIDE, _text(filled["title"]), body, parts, left_out)


def _text(words: Any) -> str:
    return " ".join(without_marks(str(words)).split())


def _named(name: str, label: str) -> str:
    return ", ".join(each for each in (name, label) if each)


def _number(value: float) -> str:
    return f"{value:g}" if abs(value) < 1e6 and value != int(value) else f"{value:.15g}"
