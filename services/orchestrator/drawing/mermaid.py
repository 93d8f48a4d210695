"""Source text for mermaid, made from checked data by rules: no text of a model or a document can become syntax."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from services.orchestrator.drawing.forms import Form

_LONGEST = 120
"""Characters of a label."""
_KEPT = frozenset(" .,-+/()'!?$€£*°=…–—")
_KEYWORD = re.compile(r"\b(?=end\b)", re.IGNORECASE)
"""The word that closes a block wherever it stands alone."""
"""Marks that no diagram gives a meaning to within a label."""


def escaped(text: str) -> str:
    """A label: letters, digits and harmless marks as they are, everything else as an entity; one line, and not too long."""
    words = " ".join(text.split())
    cut = words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"
    marked = "".join(char if char.isalnum() or char in _KEPT or _joins(char) else f"#{ord(char)};" for char in cut)
    return _KEYWORD.sub("\u200b", marked)


def _joins(char: str) -> bool:
    """Vowel signs and accents, which belong to their letters."""
    return ord(char) > 0x2FF and not char.isspace() and char.isprintable() and not char.isascii()


def diagram(form: Form, nodes: Sequence[Mapping[str, Any]], edges: Sequence[Mapping[str, Any]]) -> str:
    """A diagram of nodes (`id`, `label`, `members`) and edges (`from`, `to`, `label`)."""
    ids = {node["id"]: f"n{number}" for number, node in enumerate(nodes, start=1)}
    make = {Form.SEQUENCE: _sequence, Form.CLASS: _classes, Form.STATE: _states, Form.MIND_MAP: _mind_map}.get(
        form, _flow
    )
    return "\n".join(make(nodes, edges, ids)) + "\n"


def timeline(title: str, events: Sequence[Mapping[str, str]]) -> str:
    """A time line of events (`when`, `what`)."""
    rows = ["timeline"]
    if title:
        rows.append(f"    title {escaped(title)}")
    rows += [f"    {escaped(each['when'])} : {escaped(each['what'])}" for each in events]
    return "\n".join(rows) + "\n"


Nodes = Sequence[Mapping[str, Any]]


def _flow(nodes: Nodes, edges: Nodes, ids: Mapping[str, str]) -> list[str]:
    rows = ["flowchart TD", *(f'    {ids[node["id"]]}["{escaped(node["label"])}"]' for node in nodes)]
    for edge in edges:
        label = f'|"{escaped(edge["label"])}"|' if edge["label"] else ""
        rows.append(f"    {ids[edge['from']]} -->{label} {ids[edge['to']]}")
    return rows


def _sequence(nodes: Nodes, edges: Nodes, ids: Mapping[str, str]) -> list[str]:
    rows = ["sequenceDiagram", *(f"    participant {ids[node['id']]} as {escaped(node['label'])}" for node in nodes)]
    rows += [f"    {ids[edge['from']]}->>{ids[edge['to']]}: {escaped(edge['label']) or '…'}" for edge in edges]
    return rows


def _classes(nodes: Nodes, edges: Nodes, ids: Mapping[str, str]) -> list[str]:
    rows = ["classDiagram"]
    for node in nodes:
        rows.append(f'    class {ids[node["id"]]}["{escaped(node["label"])}"]')
        rows += [f"    {ids[node['id']]} : {escaped(member)}" for member in node.get("members", ())]
    for edge in edges:
        label = f" : {escaped(edge['label'])}" if edge["label"] else ""
        rows.append(f"    {ids[edge['from']]} --> {ids[edge['to']]}{label}")
    return rows


def _states(nodes: Nodes, edges: Nodes, ids: Mapping[str, str]) -> list[str]:
    rows = ["stateDiagram-v2", *(f'    state "{escaped(node["label"])}" as {ids[node["id"]]}' for node in nodes)]
    for edge in edges:
        label = f" : {escaped(edge['label'])}" if edge["label"] else ""
        rows.append(f"    {ids[edge['from']]} --> {ids[edge['to']]}{label}")
    return rows


def _mind_map(nodes: Nodes, edges: Nodes, ids: Mapping[str, str]) -> list[str]:
    """A tree: the first node is the root, and a node hangs below the first that has an edge to it."""
    children: dict[str, list[str]] = {}
    placed = {nodes[0]["id"]} if nodes else set()
    for edge in edges:
        if edge["to"] not in placed:
            placed.add(edge["to"])
            children.setdefault(edge["from"], []).append(edge["to"])
    labels = {node["id"]: node["label"] for node in nodes}
    rows = ["mindmap"]

    def add(node: str, level: int) -> None:
        rows.append(f'{"  " * level}{ids[node]}["{escaped(labels[node])}"]')
        for child in children.get(node, ()):
            add(child, level + 1)

    if nodes:
        add(nodes[0]["id"], 1)
    return rows
