"""Dashboards, alerts and runbook agree with each other; whether they agree with the system is asked of a live one
(tests/system/test_telemetry.py)."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.promql import ALERTS, alerts, dashboards, expressions, selectors
from tests.third_party_metrics import ALL

RUNBOOK = Path(__file__).resolve().parents[2] / "docs" / "runbook.md"
PARTS = ("Means", "Users see", "Look", "Cure")


def entries() -> dict[str, str]:
    """The runbook's, by alert."""
    pieces = re.split(r"^### (\w+)$", RUNBOOK.read_text(), flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def test_every_expression_can_be_read() -> None:
    assert all(selectors(each) for each in expressions())


def test_every_metric_is_ours_or_has_a_named_exporter() -> None:
    unknown = {
        (each.place, selector.metric)
        for each in expressions()
        for selector in selectors(each)
        if not selector.metric.startswith(("groundwork_", "process_")) and selector.metric not in ALL
    }
    assert not unknown
    used = {selector.metric for each in expressions() for selector in selectors(each)}
    assert set(ALL) <= used, "listed, and used by nobody"


def test_every_alert_has_a_runbook_entry_and_the_other_way_round() -> None:
    names = [rule["alert"] for rule in alerts()]
    assert len(set(names)) == len(names)
    assert set(entries()) == set(names)


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: str(rule["alert"]))
def test_alert_says_how_urgent_it_is_what_happens_and_where_to_read_on(rule: dict[str, dict[str, str]]) -> None:
    name = str(rule["alert"])
    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert rule["annotations"]["summary"].endswith(".")
    assert rule["annotations"]["runbook"] == f"docs/runbook.md#{name.lower()}"
    missing = [part for part in PARTS if f"**{part}.**" not in entries()[name]]
    assert not missing


def test_runbook_names_settings_and_lines_of_logs_that_there_are() -> None:
    root, text = RUNBOOK.parents[1], RUNBOOK.read_text()
    settings = (root / "docs" / "settings.md").read_text()
    assert not [name for name in set(re.findall(r"GROUNDWORK_[A-Z_]+", text)) if f"`{name}`" not in settings]
    events = {each for each in re.findall(r"`([a-z]+(?:_[a-z]+)+)`", text) if not each.startswith("groundwork_")}
    code = "".join(path.read_text() for folder in ("kit", "services") for path in (root / folder).rglob("*.py"))
    others = {
        "trace_id",
        "run_id",
        "document_id",
        "left_out_before",
        "max_concurrent",
        "container_cpu_cfs_throttled_seconds_total",
    }
    assert not [each for each in events - others if f'"{each}"' not in code]


def test_dashboards_have_a_place_for_each_panel_and_ids_of_their_own() -> None:
    assert len(dashboards()) == 6
    assert len({each["uid"] for each in dashboards().values()}) == 6
    for name, dashboard in dashboards().items():
        panels = dashboard["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels), name
        taken: set[tuple[int, int]] = set()
        for panel in panels:
            place = panel["gridPos"]
            cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
            assert place["x"] + place["w"] <= 24, (name, panel["title"])
            assert not cells & taken, (name, panel["title"])
            taken |= cells


def test_prometheus_itself_reads_the_alerts() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not on the PATH")
    done = subprocess.run([promtool, "check", "rules", str(ALERTS)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
