"""Writes the Grafana dashboards from the tables in `dashboards/`. With --check it writes nothing and fails when what is committed
differs."""

import json
import sys
from pathlib import Path
from typing import Any

from scripts.dashboards.answers import ANSWERS
from scripts.dashboards.gateway import GATEWAY
from scripts.dashboards.ingestion import INGESTION
from scripts.dashboards.models import MODELS
from scripts.dashboards.overview import OVERVIEW
from scripts.dashboards.panels import Dashboard, Panel, Row
from scripts.dashboards.store import STORE

FOLDER = Path(__file__).resolve().parent.parent / "deploy" / "helm" / "groundwork" / "files" / "dashboards"
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
DASHBOARDS = (OVERVIEW, ANSWERS, INGESTION, MODELS, STORE, GATEWAY)
_WIDTH, _HEIGHT, _STAT_HEIGHT = 24, 8, 4


def document(dashboard: Dashboard) -> str:
    """The dashboard as Grafana imports it."""
    panels: list[dict[str, Any]] = []
    top = 0
    for row in dashboard.rows:
        panels.append(_row(row, len(panels) + 1, top))
        top += 1
        height = _STAT_HEIGHT if all(panel.kind == "stat" for panel in row.panels) else _HEIGHT
        width = _WIDTH // min(len(row.panels), 6 if height == _STAT_HEIGHT else 3)
        left = 0
        for panel in row.panels:
            if left + width > _WIDTH:
                left, top = 0, top + height
            place = {"x": left, "y": top, "w": width, "h": height}
            panels.append(_panel(panel, len(panels) + 1, place))
            left += width
        top += height
    found = {
        "uid": f"groundwork-{dashboard.name}",
        "title": f"Groundwork / {dashboard.title}",
        "description": dashboard.about,
        "tags": ["groundwork"],
        "schemaVersion": 41,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": _variables()},
        "links": [_link()],
        "panels": panels,
    }
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _variables() -> list[dict[str, Any]]:
    """Where the metrics are, and of which installation. A Prometheus without namespaces, as of one machine, has them all in one."""
    query = "label_values(groundwork_build_info, namespace)"
    return [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "current": {}},
        {
            "name": "namespace",
            "label": "Namespace",
            "type": "query",
            "datasource": _DATASOURCE,
            "query": {"query": query, "refId": "namespace"},
            "definition": query,
            "refresh": 2,
            "includeAll": True,
            "allValue": ".*",
            "multi": True,
            "current": {"text": "All", "value": "$__all"},
        },
    ]


def _link() -> dict[str, Any]:
    return {"type": "dashboards", "title": "Groundwork", "tags": ["groundwork"], "asDropdown": True, "keepTime": True}


def _row(row: Row, number: int, top: int) -> dict[str, Any]:
    place = {"x": 0, "y": top, "w": _WIDTH, "h": 1}
    return {"id": number, "type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []}


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + index), "expr": expression, "legendFormat": legend, "datasource": _DATASOURCE}
        for index, (expression, legend) in enumerate(panel.queries)
    ]
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.kind == "timeseries":
        defaults["custom"] = {"fillOpacity": 10, "showPoints": "never", "stacking": {"mode": panel.stacking}}
    if panel.alarm_above is not None:
        steps = [{"color": "green", "value": None}, {"color": "red", "value": panel.alarm_above}]
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
    options: dict[str, Any] = {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}
    if panel.kind == "stat":
        options = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "graphMode": "area"}
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": _DATASOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": targets,
    }


def main(*, check: bool) -> int:
    written = {f"{dashboard.name}.json": document(dashboard) for dashboard in DASHBOARDS}
    there = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    stale = sorted(name for name in {*written, *there} if written.get(name) != there.get(name))
    if check and stale:
        print(f"out of date: {FOLDER.name}/{', '.join(stale)}: run make gen and commit them", file=sys.stderr)
        return 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in stale:
        if name in written:
            (FOLDER / name).write_text(written[name])
        else:
            (FOLDER / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
