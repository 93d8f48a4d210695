"""Asks a retriever on this machine what its indexes lack: it alone knows, and only while it runs."""

from __future__ import annotations

import asyncio
import http.client

from prometheus_client.parser import text_string_to_metric_families

TIMEOUT_S = 5.0
_MISSING = "groundwork_retriever_missing_revisions"
_UP = "groundwork_retriever_engine_up"
_NAMES = {"dense": "the vector index", "lexical": "the text index"}


async def describe_indexes(ops_port: int) -> list[str]:
    """A line for each index: how many documents it lacks, and whether it answers."""
    try:
        text = await asyncio.to_thread(_metrics, ops_port)
        values = {
            (sample.name, sample.labels.get("engine", "")): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
    except (OSError, http.client.HTTPException, ValueError) as error:
        return [f"Indexes: the retriever does not say what they lack ({error})."]
    return [
        _line(name, int(values.get((_MISSING, engine), 0)), values.get((_UP, engine), 1))
        for engine, name in _NAMES.items()
    ]


def _line(name: str, missing: int, is_up: float) -> str:
    if not is_up:
        return f"Indexes: {name} does not answer; searches go on without it, documents wait for it."
    if missing:
        return f"Indexes: {name} lacks {missing} documents and is being filled again; searches say so meanwhile."
    return f"Indexes: {name} lacks no document."


def _metrics(ops_port: int) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", ops_port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    finally:
        connection.close()
