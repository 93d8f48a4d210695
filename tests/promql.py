"""What the dashboards and alerts ask Prometheus for: their expressions, and the metrics and labels that these name."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser as promql
import yaml

FILES = Path(__file__).resolve().parent.parent / "deploy" / "helm" / "groundwork" / "files"
ALERTS = FILES / "alerts.yaml"
_VARIABLES = {"$__rate_interval": "5m", "$namespace": ".*"}
"""Of Grafana, and what stands for them here."""


@dataclass(frozen=True)
class Expression:
    """One expression, and where it stands."""

    place: str
    text: str


@dataclass(frozen=True)
class Selector:
    """A metric as an expression names it, with the labels that it filters by, and each value that it names of one."""

    metric: str
    filters: tuple[tuple[str, tuple[str, ...]], ...]


def alerts() -> list[dict[str, Any]]:
    """The rules of the file of alerts."""
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def dashboards() -> dict[str, dict[str, Any]]:
    """By the name of their file."""
    return {path.name: json.loads(path.read_text()) for path in sorted((FILES / "dashboards").glob("*.json"))}


def expressions() -> Iterator[Expression]:
    """Of all dashboards and alerts, without variables."""
    for rule in alerts():
        yield Expression(f"alert {rule['alert']}", rule["expr"])
    for name, dashboard in dashboards().items():
        for panel in dashboard["panels"]:
            for target in panel.get("targets", ()):
                text = target["expr"]
                for variable, value in _VARIABLES.items():
                    text = text.replace(variable, value)
                yield Expression(f"{name}, panel {panel['title']!r}", text)


def selectors(expression: Expression) -> list[Selector]:
    """What it selects. Raises ValueError when Prometheus could not read it."""
    return [_selector(each) for each in _vector_selectors(promql.parse(expression.text))]


def grouping_labels(expression: Expression) -> set[str]:
    """Labels that it groups or joins by."""
    found = re.findall(r"\b(?:by|on|group_left|group_right)\s*\(([^)]*)\)", expression.text)
    return {label.strip() for labels in found for label in labels.split(",") if label.strip()}


def _vector_selectors(node: Any) -> Iterator[Any]:
    if isinstance(node, promql.VectorSelector):
        yield node
    elif isinstance(node, promql.MatrixSelector):
        yield node.vector_selector
    elif isinstance(node, promql.BinaryExpr):
        yield from _vector_selectors(node.lhs)
        yield from _vector_selectors(node.rhs)
    elif isinstance(node, promql.Call):
        for argument in node.args:
            yield from _vector_selectors(argument)
    elif isinstance(node, promql.AggregateExpr | promql.ParenExpr | promql.UnaryExpr | promql.SubqueryExpr):
        yield from _vector_selectors(node.expr)
    else:
        assert isinstance(node, promql.NumberLiteral | promql.StringLiteral), node


def _selector(node: Any) -> Selector:
    filters = tuple((each.name, _values(each)) for each in node.matchers.matchers)
    return Selector(node.name, filters)


def _values(matcher: Any) -> tuple[str, ...]:
    """Each alternative of a pattern; of a pattern that names no value, none."""
    if matcher.op in (promql.MatchOp.Equal, promql.MatchOp.NotEqual):
        return (matcher.value,)
    if matcher.value.startswith((".*", "^")) or not matcher.value:
        return ()
    return tuple(_alternatives(matcher.value))


def _alternatives(pattern: str) -> Iterator[str]:
    """`A/(B|C)|D` as `A/B`, `A/C` and `D`."""
    depth, start = 0, 0
    parts: list[str] = []
    for index, character in enumerate(pattern):
        depth += (character == "(") - (character == ")")
        if character == "|" and not depth:
            parts.append(pattern[start:index])
            start = index + 1
    for part in [*parts, pattern[start:]]:
        group = re.search(r"\(([^()]*)\)", part)
        if group is None:
            yield part
        else:
            for each in group[1].split("|"):
                yield part[: group.start()] + each + part[group.end() :]
