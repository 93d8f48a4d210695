"""How many processes of each service run side by side, as settings and the command line write it: ``orchestrator=3,gateway=2``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from services.standalone.errors import StartRefused

REPLICABLE = (
    "reranker",
    "retriever",
    "memory",
    "tools",
    "ingest",
    "ingest-worker",
    "orchestrator",
    "gateway",
)
REPLICA_FOLDERS = "replicas"
REPLICAS_MAX = 16
"""A process takes 60 to 250 MB: more than these on one machine are a slip of the finger."""
_PART = re.compile(r"(?P<name>[^=]+?)\s*=\s*(?P<count>[0-9]{1,18})")
_INDEX_SERVERS = ("GROUNDWORK_QDRANT_URL", "GROUNDWORK_ELASTICSEARCH_URL")


def parse_replicas(text: str) -> dict[str, int]:
    """Numbers by service; a service that is not named runs once. Raises ValueError, whose message is for the user."""
    counts: dict[str, int] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is not SERVICE=NUMBER; write several with commas: orchestrator=3,gateway=2")
        name, count = match["name"], int(match["count"])
        if name not in REPLICABLE:
            raise ValueError(f"{name} cannot run several times side by side here; these can: {', '.join(REPLICABLE)}")
        if name in counts:
            raise ValueError(f"{name} is named twice")
        if not 1 <= count <= REPLICAS_MAX:
            raise ValueError(f"{name}={count}: run at least 1 and at most {REPLICAS_MAX} of a service")
        counts[name] = count
    return counts


def require_index_servers(replicas: Mapping[str, int], environment: Mapping[str, str]) -> None:
    """Raises StartRefused for several retrievers whose indexes are files: one process at a time can write those."""
    missing = [variable for variable in _INDEX_SERVERS if not environment.get(variable)]
    if replicas.get("retriever", 1) > 1 and missing:
        raise StartRefused(
            f"retriever={replicas['retriever']}: the indexes in the data directory belong to one retriever. Leave that out, or put "
            f"both indexes on servers, which any number share: set {' and '.join(missing)}"
        )


def instance_name(service: str, number: int) -> str:
    """``orchestrator``, ``orchestrator-2``, …: who runs one of each meets the names of the services alone."""
    return service if number == 1 else f"{service}-{number}"


def unused_folders(data_dir: Path, replicas: Mapping[str, int]) -> list[Path]:
    """Folders of processes that ran before and do not now. What they keep is a cache, from which nobody would remove what is to be
    forgotten."""
    used = {instance_name(service, number) for service, count in replicas.items() for number in range(2, count + 1)}
    return [folder for folder in (data_dir / REPLICA_FOLDERS).glob("*") if folder.name not in used]
