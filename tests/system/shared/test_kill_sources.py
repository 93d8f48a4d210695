"""The process that syncs is killed again and again in the middle of a sync: each file is one document in the end, as it is now."""

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.integration.api import Api, Json
from tests.integration.system import Groundwork, wait_until
from tests.system.amounts import kills
from tests.system.shared.test_kill import unique_word

pytestmark = [pytest.mark.integration, pytest.mark.kill]

KILLS = kills(10)
FILES = 400
CHANGES_A_KILL = 100
LOOKED_UP = 25


def write(folder: Path, number: int, place: str, version: int) -> None:
    """A file, instead of where it was before."""
    for old in folder.rglob(f"mooring-{number}.md"):
        old.unlink()
    (folder / place).mkdir(exist_ok=True)
    text = f"The mooring {unique_word(number)} lies in the harbour of Emden. Version {version} of its record."
    (folder / place / f"mooring-{number}.md").write_text(text)


def kill_all(system: Groundwork) -> list[int]:
    """Whichever of the processes syncs, it is among them."""
    killed = [int(each["pid"]) for each in system.processes_of("ingest")]
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    return killed


def documents(api: Api, collection_id: str) -> list[Json]:
    found = api.get(f"/v1/collections/{collection_id}/documents", page_size=1000)
    assert not found["next_page_token"]
    return list(found["documents"])


def texts_of(api: Api, collection_id: str, number: int) -> list[str]:
    """Of all hits that hold the file's word."""
    hits = api.search(collection_id, f"mooring {unique_word(number)}", strategy="lexical", top_k=200)["hits"]
    return [hit["text"].strip() for hit in hits if unique_word(number) in hit["text"]]


@pytest.mark.timeout(900)
def test_sync_killed_again_and_again_loses_doubles_and_leaves_stale_no_file(
    model_system: Groundwork, model_api: Api, tmp_path: Path
) -> None:
    rng = random.Random(20261127)
    for number in range(FILES):
        write(tmp_path, number, f"{number % 7}", 0)
    (model_system.data_dir / "watched-folders.json").write_text(json.dumps({"local/moorings": str(tmp_path)}))
    collection_id = model_api.new_collection()
    body = {"kind": "folder", "collection_id": collection_id, "settings": {"folder": "moorings"}}
    path = f"/v1/sources/{model_api.post('/v1/sources', body)['id']}"
    began: set[str | None] = {None}

    def source() -> Json:
        return model_api.get(path)

    def syncs_anew() -> bool:
        sync = source()["sync"]
        return sync is not None and sync["began_at"] not in began

    for turn in range(KILLS):
        wait_until(syncs_anew, "a process that was not killed syncs", more=lambda: str(source()))
        began.add(source()["sync"]["began_at"])
        time.sleep(rng.uniform(0.0, 0.8))
        killed = kill_all(model_system)
        for number in rng.sample(range(FILES), CHANGES_A_KILL):
            write(tmp_path, number, rng.choice([f"{number % 7}", f"{number % 5}-moved"]), rng.choice([0, turn + 1]))
        for pid in killed:
            model_system.wait_until_up("ingest", not_pid=pid)
    files = {str(file.relative_to(tmp_path)): file.stat().st_size for file in tmp_path.rglob("*.md")}

    def is_in_step() -> bool:
        now = source()
        return now["state"] == "waiting" and not now["pending_count"] and now["file_count"] == FILES

    model_api.post(f"{path}/run", {})
    wait_until(is_in_step, "the source is in step", more=lambda: str(source()))
    found = documents(model_api, collection_id)
    assert {each["source"]["path"]: each["size_bytes"] for each in found} == files
    assert len(found) == FILES, "a file has two documents"
    assert {each["status"] for each in found} == {"ready"}
    for number in rng.sample(range(FILES), LOOKED_UP):
        (file,) = tmp_path.rglob(f"mooring-{number}.md")
        # A document whose removal was cut off is gone from the indexes once the sweep has been there.
        wait_until(
            lambda number=number, file=file: texts_of(model_api, collection_id, number) == [file.read_text()],  # type: ignore[misc]
            f"{file} is found as it is, once",
            timeout_s=60,
            more=lambda number=number: str(texts_of(model_api, collection_id, number)),  # type: ignore[misc]
        )
