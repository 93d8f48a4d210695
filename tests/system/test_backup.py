"""`groundwork backup` of a running system, its data directory lost, `groundwork restore`, and everything is there again."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integration.api import Api, Json, ok, shown_text
from tests.integration.conftest import DATA, UNHURRIED
from tests.integration.system import Groundwork, groundwork_command, running, wait_until
from tests.integration.test_forgetting import stored

pytestmark = pytest.mark.integration
QUESTION = "How long is the notice period during probation?"
FORGOTTEN = "Zqvorbruges"


def command(system: Groundwork, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [groundwork_command(), *arguments],
        env=system.environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_everything_is_there_again_after_the_data_directory_was_lost(tmp_path: Path, models_dir: Path) -> None:
    settings = UNHURRIED | {"GROUNDWORK_INGEST_RECONCILE_INTERVAL_S": "1"}
    system = Groundwork(tmp_path / "data", models_dir.absolute(), settings)
    file = str(tmp_path / "backup.tar")
    with running(system), Api.open(system.base_url) as api:
        handbook = (DATA / "handbook.md").read_bytes()
        document = api.ingest("default", "handbook.md", handbook)
        list(api.converse("I live in Ghent."))
        wait_until(lambda: api.get("/v1/memory/facts")["facts"], "the fact is learnt")
        (fact,) = api.get("/v1/memory/facts")["facts"]
        ok(api.http.patch(f"/v1/memory/facts/{fact['id']}", json={"text": f"I live in {FORGOTTEN}."}))
        assert stored(system, FORGOTTEN)
        assert api.http.delete(f"/v1/memory/facts/{fact['id']}").status_code == 204
        wait_until(lambda: stored(system, FORGOTTEN) == [], "the fact is forgotten")
        thread_id = api.post("/v1/threads")["id"]
        told = list(api.chat("default", QUESTION, thread_id=thread_id))
        made = command(system, "backup", file)
        assert made.returncode == 0, made.stderr
    refused = command(system, "restore", file)
    assert (refused.returncode, "holds data already" in refused.stderr) == (2, True)

    shutil.rmtree(system.data_dir)
    restored = command(system, "restore", file)
    assert restored.returncode == 0, restored.stderr

    with running(system), Api.open(system.base_url) as api:
        assert [each["text"] for each in api.get(f"/v1/threads/{thread_id}")["messages"]] == [
            QUESTION,
            shown_text(told),
        ]
        assert api.replay(told[0].data["run_id"]) == told
        assert stored(system, FORGOTTEN) == [], "what was forgotten before the backup"
        assert api.get("/v1/memory/facts", with_past=True)["facts"] == []

        def is_made_again() -> bool:
            now: Json = api.get(f"/v1/documents/{document['id']}")
            return now["status"] == "ready" and now["revision_id"] != document["revision_id"]

        wait_until(is_made_again, "the document is indexed again")
        assert "two weeks" in api.qa("default", QUESTION)["answer"]
        again = api.upload("default", "handbook.md", handbook)
        assert (again["id"], again["status"]) == (document["id"], "ready")
