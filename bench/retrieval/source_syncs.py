"""A folder of many small files, of which few change: how long the next sync takes, and how many texts are embedded for it. Then
kills in the middle of syncs: whether a file is lost, doubled or stale."""

import asyncio
import hashlib
import json
import os
import random
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from bench.report import Figure, Part
from evals.system import RunningSystem, running_system
from evals.tables import Table

FILES = int(os.environ.get("BENCH_SOURCE_FILES", "10000"))
CHANGED, KILLS, CHANGED_A_KILL = 10, 10, 20
SYNC_TARGET_S = 5.0
_COLLECTION, _FOLDER = "notes", "notes"
_POLL_S = 0.05
_READY_TIMEOUT_S = 3600.0


@dataclass(frozen=True)
class Measured:
    """One run."""

    first_s: float
    second_s: float
    """From the demand to sync, behind the changes, until the sync is over."""
    searchable_s: float
    """From the same moment until all changes are indexed."""
    embedded: int
    lost: int
    doubled: int
    stale: int


def measure() -> Part:
    """A first sync, a second with changes, and syncs whose process is killed."""
    with tempfile.TemporaryDirectory() as made:
        files, data = Path(made) / "files", Path(made) / "data"
        files.mkdir()
        data.mkdir()
        for number in range(FILES):
            _write(files, number, 0)
        with running_system(data) as system:
            (data / "watched-folders.json").write_text(json.dumps({f"*/{_FOLDER}": str(files)}))
            found = asyncio.run(_measured(system, files))
    faults = f"{found.lost} / {found.doubled} / {found.stale}"
    return Part(
        title="Sources in step",
        about=(
            f"A watched folder of {FILES} small files. {CHANGED} of them change before the second sync. Then the ingest process is "
            f"killed {KILLS} times during a sync, {CHANGED_A_KILL} more files changing each time. Lost: a file without a document. "
            "Doubled: one with two. Stale: a document of another size or content hash than the file."
        ),
        figures=(
            Figure(
                f"sync of {FILES} files with {CHANGED} changed, s",
                f"{found.second_s:.1f}",
                f"< {SYNC_TARGET_S:g}",
                found.second_s < SYNC_TARGET_S,
            ),
            Figure("embeddings for it", str(found.embedded), str(CHANGED), found.embedded == CHANGED),
            Figure(f"files lost / doubled / stale after {KILLS} kills", faults, "0 / 0 / 0", faults == "0 / 0 / 0"),
        ),
        tables=(
            Table(
                ("files", "first sync until all is indexed, s", "second sync, s", "until its changes are indexed, s"),
                [(str(FILES), f"{found.first_s:.0f}", f"{found.second_s:.1f}", f"{found.searchable_s:.1f}")],
            ),
        ),
    )


async def _measured(system: RunningSystem, files: Path) -> Measured:
    async with system.http() as client:
        (await client.post("/v1/collections", json={"id": _COLLECTION})).raise_for_status()
        body = {"kind": "folder", "collection_id": _COLLECTION, "settings": {"folder": _FOLDER}, "every_s": 604_800}
        began = time.perf_counter()
        made = await client.post("/v1/sources", json=body)
        made.raise_for_status()
        path = f"/v1/sources/{made.json()['id']}"
        await _in_step(client, path)
        first_s = time.perf_counter() - began
        before = await _documents(client)
        await client.patch(path, json={"paused": True})  # or its watch begins with the first of the changes
        for number in range(CHANGED):
            _write(files, number, 1)
        await client.patch(path, json={"paused": False})
        began, asked_at = time.perf_counter(), datetime.now(UTC)
        source = await _in_step(client, path, run=True)
        searchable_s = time.perf_counter() - began
        second_s = (datetime.fromisoformat(source["sync"]["ended_at"]) - asked_at).total_seconds()
        after = await _documents(client)
        changed = [each for each in after if each["sha256"] not in {old["sha256"] for old in before}]
        embedded = sum(each["report"]["chunk_count"] - each["report"]["reused_chunk_count"] for each in changed)
        for turn in range(KILLS):
            await _kill_during_a_sync(system, client, path, files, turn)
        await _in_step(client, path, run=True)
        return Measured(first_s, second_s, searchable_s, embedded, *_faults(await _documents(client), files))


async def _kill_during_a_sync(
    system: RunningSystem, client: httpx.AsyncClient, path: str, files: Path, turn: int
) -> None:
    rng = random.Random(turn)
    for number in rng.sample(range(FILES), CHANGED_A_KILL):
        _write(files, number, turn + 2)
    await _run(client, path)
    while (await _source(client, path))["state"] != "syncing":  # noqa: ASYNC110 - of another process
        await asyncio.sleep(_POLL_S)
    await asyncio.sleep(rng.uniform(0.0, 0.5))
    dict(system.processes())["ingest"].kill()


async def _in_step(client: httpx.AsyncClient, path: str, *, run: bool = False) -> dict[str, Any]:
    """The source once a sync has ended, that begins now where `run` says so, and what it took is indexed."""
    before = ""
    async with asyncio.timeout(_READY_TIMEOUT_S):
        if run:
            before = ((await _source(client, path))["sync"] or {}).get("ended_at") or ""
            await _run(client, path)
        while True:
            source = await _source(client, path)
            ended_at = (source["sync"] or {}).get("ended_at") or before
            if source["state"] == "waiting" and ended_at != before and not source["pending_count"]:
                return source
            await asyncio.sleep(_POLL_S)


async def _run(client: httpx.AsyncClient, path: str) -> None:
    while (await client.post(f"{path}/run", json={})).status_code != 202:  # noqa: ASYNC110 - of another process
        await asyncio.sleep(_POLL_S)  # its process has been killed


async def _source(client: httpx.AsyncClient, path: str) -> dict[str, Any]:
    while True:
        answer = await client.get(path)
        if answer.status_code == 200:
            found: dict[str, Any] = answer.json()
            return found
        await asyncio.sleep(_POLL_S)  # its process has been killed


async def _documents(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    token = ""
    while True:
        query: dict[str, str | int] = {"page_size": 1000, "page_token": token}
        answer = await client.get(f"/v1/collections/{_COLLECTION}/documents", params=query)
        answer.raise_for_status()
        found += answer.json()["documents"]
        if not (token := answer.json()["next_page_token"]):
            return found


def _write(files: Path, number: int, version: int) -> None:
    (files / f"{number}.md").write_text(
        f"Mooring {number} lies in the harbour of Emden. Version {version} of its record.\n"
    )


def _faults(documents: list[dict[str, Any]], files: Path) -> tuple[int, int, int]:
    """Files without a document, files with several, and documents that are not as their file is."""
    hashes = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files.iterdir()}
    counts = Counter(each["source"]["path"] for each in documents)
    lost = sum(name not in counts for name in hashes)
    doubled = sum(count > 1 for count in counts.values())
    stale = sum(each["status"] != "ready" or hashes.get(each["source"]["path"]) != each["sha256"] for each in documents)
    return lost, doubled, stale
