"""`python -m bench`: measures and prints one page. `make bench ARGS=…` passes options on."""

import argparse
import gc
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench.conditions import Conditions, load_average
from bench.operation import callers, clean_clone, failover, first_page, recovery, replicas, rolling, start, tls
from bench.pages import renewed
from bench.peers import peer
from bench.report import Part, render
from bench.retrieval import ingestion, memories, rerank, searching, small_documents, source_syncs, stalls
from bench.retrieval.raw_embedder import RawEmbedder
from bench.runs import agents, answering, following, research, steps, streams
from evals.datasets.loading import OWN_COLLECTION

PARTS = (
    "start",
    "first-page",
    "ingestion",
    "small-documents",
    "source-syncs",
    "search",
    "search-100k",
    "memory",
    "recovery",
    "stalls",
    "rerank",
    "answers",
    "streams",
    "steps",
    "following",
    "failover",
    "replicas",
    "agents",
    "research",
    "rolling",
    "tls",
    "callers",
    "peer",
)
DEFAULT_PARTS = PARTS[:-1]
"""The peer needs a package index once, and minutes on a collection that means something."""


def main() -> None:
    """Runs the parts that were asked for, one after the other."""
    options = _options()
    os.environ.setdefault("GROUNDWORK_MODELS_DIR", ".models")
    raw = RawEmbedder()
    conditions = Conditions.now(raw.description)
    measures: dict[str, Callable[[], Part]] = {
        "start": start.measure,
        "first-page": first_page.measure,
        "ingestion": lambda: ingestion.measure(raw),
        "small-documents": lambda: small_documents.measure(raw),
        "source-syncs": source_syncs.measure,
        "search": lambda: searching.measure(searching.LAPTOP),
        "search-100k": lambda: searching.measure(searching.LARGE),
        "memory": memories.measure,
        "recovery": recovery.measure,
        "stalls": stalls.measure,
        "rerank": lambda: rerank.measure(raw),
        "peer": lambda: peer.measure(options.peer_collection),
        "answers": answering.measure,
        "streams": streams.measure,
        "steps": steps.measure,
        "following": following.measure,
        "failover": failover.measure,
        "replicas": replicas.measure,
        "agents": agents.measure,
        "research": research.measure,
        "rolling": rolling.measure,
        "tls": tls.measure,
        "callers": callers.measure,
        "clean-clone": clean_clone.measure,
    }
    gc.freeze()  # a collector that looks through all modules would be in the latencies
    chosen = [*options.parts, *(["clean-clone"] if options.clean_clone else [])]
    page = render([_measured(name, measures[name]) for name in chosen], conditions)
    sys.stdout.write(page)
    if options.write:
        known = options.write.read_text("utf-8") if options.write.exists() else ""
        options.write.write_text(renewed(known, page) if known else page, "utf-8")


def _measured(name: str, measure: Callable[[], Part]) -> Part:
    load_before, began = load_average(), time.perf_counter()
    sys.stderr.write(f"measuring {name} ...\n")
    part = measure()
    sys.stderr.write(f"measured {name} in {time.perf_counter() - began:.0f} s\n")
    return replace(part, load=f"{load_before}; {load_average()}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "--parts",
        nargs="*",
        choices=PARTS,
        default=DEFAULT_PARTS,
        help=f"what to measure; default: {' '.join(DEFAULT_PARTS)}",
    )
    parser.add_argument(
        "--peer-collection",
        type=Path,
        default=OWN_COLLECTION,
        metavar="PATH",
        help="the test collection of the part `peer`, as for `make eval`; default: the small one of this repository",
    )
    parser.add_argument(
        "--clean-clone",
        action="store_true",
        help="also measure clone, installation, start, upload and first answer: minutes, needs a package index",
    )
    parser.add_argument(
        "--write",
        type=Path,
        metavar="FILE",
        help="also write the page to FILE (docs/benchmarks.md), where other parts keep their figures",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
