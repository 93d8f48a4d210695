"""Whether the system runs, and what its indexes lack, in lines for `groundwork doctor`. What cannot be known is said to be so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ops.indexes import describe_indexes
from services.standalone.supervising.state_file import RunningSystem

OF_A_CLUSTER = (
    "A cluster: its message store was looked at. How its services are and what the two indexes lack does not stand there; /readyz "
    "of the gateway says it, and groundwork_retriever_missing_revisions in the retrievers' metrics."
)
_STOPPED = (
    "Groundwork is stopped; a copy of its message store was looked at. Which documents the two indexes lack is not known until it "
    "runs: the retriever compares them before it serves, and fills what is missing."
)
_EMBEDDED = {"GROUNDWORK_QDRANT_URL": "dense", "GROUNDWORK_ELASTICSEARCH_URL": "lexical"}
"""The folder of an index that is not on a server."""


async def of_running(system: RunningSystem) -> list[str]:
    """A system that runs on this machine."""
    ops_port = system.services.get("retriever", {}).get("ops_port")
    indexes = await describe_indexes(int(ops_port)) if ops_port else []
    return [system.described(), *indexes]


def of_stopped(data_dir: Path, environment: Mapping[str, str]) -> list[str]:
    """A system on this machine that does not run; `environment` as its services would have it."""
    folders = [data_dir / "retriever" / name for setting, name in _EMBEDDED.items() if not environment.get(setting)]
    gone = [str(folder) for folder in folders if not folder.is_dir()]
    return [_STOPPED, *(f"Indexes: there is no {folder}; it is made again from the documents." for folder in gone)]
