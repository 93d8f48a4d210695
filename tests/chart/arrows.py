"""Who calls whom: one table, derived from the settings that the services read. The chart's network policies allow exactly these
arrows (test_network.py), and docs/architecture.md tells of them."""

import re
from dataclasses import dataclass
from pathlib import Path

from tests.chart.services import GRPC_PORT, HTTP_PORT, SETTINGS, callees, stores

ARCHITECTURE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"


@dataclass(frozen=True, order=True)
class Arrow:
    source: str
    target: str
    port: int

    def __str__(self) -> str:
        return f"{self.source} → {self.target}:{self.port}"


ARROWS = frozenset(
    {
        *(Arrow(each, callee, GRPC_PORT) for each in SETTINGS for callee in callees(each)),
        *(Arrow(each, "nats", 4222) for each in SETTINGS if stores(each)),
        Arrow("retriever", "qdrant", 6333),
        Arrow("retriever", "elasticsearch", 9200),
        Arrow("orchestrator", "vllm", 8000),
        # Servers of a cluster among themselves:
        Arrow("nats", "nats", 6222),
        Arrow("qdrant", "qdrant", 6335),
        Arrow("elasticsearch", "elasticsearch", 9300),
        # Jobs:
        Arrow("backup", "nats", 4222),
        Arrow("restore", "nats", 4222),
        Arrow("test", "gateway", HTTP_PORT),
        Arrow("evaluation", "gateway", HTTP_PORT),
    }
)

_WORDS = {
    "the ingest worker": "ingest-worker",
    "the language model": "vllm",
    "NATS": "nats",
    "Qdrant": "qdrant",
    "Elasticsearch": "elasticsearch",
    **{name: name for name in SETTINGS if name != "ingest-worker"},
}
"""What the page calls the components."""


def talks_to() -> dict[str, set[str]]:
    """The column "talks to" of the page's table of rooms, by component."""
    told: dict[str, set[str]] = {}
    for line in ARCHITECTURE.read_text().splitlines():
        row = re.fullmatch(r"\| `services/(\w+)` \|.*\| ([^|]+) \|", line)
        if row and row[1] == "ingest":
            api, _, worker = row[2].partition("`worker`:")
            told |= {"ingest": _named(api), "ingest-worker": _named(worker)}
        elif row and row[1] in SETTINGS:
            told[row[1]] = _named(row[2])
    return told


def _named(text: str) -> set[str]:
    """Longer names first: `the ingest worker` is not `ingest`."""
    found = set()
    for words in sorted(_WORDS, key=len, reverse=True):
        if re.search(rf"\b{words}\b", text):
            found.add(_WORDS[words])
            text = text.replace(words, "")
    return found
