"""Writes docs/metrics.md from the registry of each service: what it measures as soon as its modules are imported. With --check it
writes nothing and fails when what is committed differs."""

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "metrics.md"
SERVICES = ("gateway", "orchestrator", "retriever", "reranker", "ingest", "memory", "tools")
_INTRODUCTION = """# Metrics

Generated from the services' registries by `make gen`. Each process tells its own at `/metrics` on its operations port
(`GROUNDWORK_OPS_PORT`), in the text format of Prometheus; besides these the usual ones of a process (`process_*`, `python_*`).
A counter is named as it is scraped, with `_total`; a histogram has `_bucket`, `_sum` and `_count`.

Labels are bounded: methods and codes of the contracts, routes, names of streams, tools, providers and models of the settings,
kinds and reasons that the code names. None is an id, and none is what users wrote. `ingest` are both of its processes, the API
and the worker: what a process has nothing to do with stays at 0.
"""
_LISTING = """
import importlib, json, sys
from prometheus_client import REGISTRY
importlib.import_module(f"services.{sys.argv[1]}.app")
metrics = importlib.import_module(f"services.{sys.argv[1]}.metrics")
if hasattr(metrics, "Metrics"):
    metrics.Metrics()
found = {}
for each in {id(c): c for c in REGISTRY._names_to_collectors.values()}.values():
    name = getattr(each, "_name", "")
    if name.startswith("groundwork_"):
        found[name] = {"type": each._type, "labels": list(each._labelnames), "help": each._documentation}
print(json.dumps(found))
"""

Listing = dict[str, dict[str, Any]]
"""By name: type, labels and help."""


def listing(service: str) -> Listing:
    """What a service's registry has, told by a process of its own: another service's modules would add theirs."""
    done = subprocess.run(
        [sys.executable, "-c", _LISTING, service], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"the metrics of {service} cannot be listed:\n{done.stderr}")
    found: Listing = json.loads(done.stdout.splitlines()[-1])
    return found


def listings() -> dict[str, Listing]:
    """Of all services."""
    with ThreadPoolExecutor(2) as threads:
        return dict(zip(SERVICES, threads.map(listing, SERVICES), strict=True))


def page(found: Mapping[str, Listing]) -> str:
    """A table for what all have, and one for each set of services that share what others lack."""
    holders: dict[str, list[str]] = defaultdict(list)
    metrics: Listing = {}
    for service, listed in found.items():
        for name, metric in listed.items():
            holders[name].append(service)
            metrics[name] = metric
    tables: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name in sorted(metrics):
        tables[tuple(holders[name])].append(_row(name, metrics[name]))
    order = sorted(tables, key=lambda services: (-len(services), [SERVICES.index(each) for each in services]))
    return "\n".join([_INTRODUCTION, *(_table(services, tables[services]) for services in order)])


def _table(services: tuple[str, ...], rows: list[str]) -> str:
    title = "Every service" if len(services) == len(SERVICES) else ", ".join(services)
    head = ["| metric | kind | labels | meaning |", "|---|---|---|---|"]
    return f"## {title}\n\n" + "\n".join([*head, *rows]) + "\n"


def _row(name: str, metric: Mapping[str, Any]) -> str:
    shown = f"{name}_total" if metric["type"] == "counter" else name
    labels = ", ".join(f"`{label}`" for label in metric["labels"])
    return f"| `{shown}` | {metric['type']} | {labels} | {metric['help']} |"


def main(*, check: bool) -> int:
    text = page(listings())
    if PAGE.exists() and PAGE.read_text() == text:
        return 0
    if check:
        print("out of date: docs/metrics.md: run make gen and commit it", file=sys.stderr)
        return 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
