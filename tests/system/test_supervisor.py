"""`groundwork up` in the hands of a user: stopped, interrupted, killed, started again, started twice."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.integration.api import Api, assert_complete, shown_text
from tests.integration.conftest import DATA, UNHURRIED
from tests.integration.system import (
    STOP_TIMEOUT_S,
    Groundwork,
    assert_gone,
    clean_environment,
    groundwork_command,
    running,
    wait_until,
)

pytestmark = pytest.mark.integration
QUESTION = "How long is the notice period during probation?"


@pytest.fixture
def fresh(tmp_path: Path, models_dir: Path) -> Iterator[Groundwork]:
    """An installation of the test's own, not started."""
    groundwork = Groundwork(tmp_path / "data", models_dir.absolute(), UNHURRIED)
    try:
        yield groundwork
    finally:
        groundwork.kill()


def up(groundwork: Groundwork, **changes: str) -> "subprocess.CompletedProcess[str]":
    """Another `groundwork up`, which is expected to give up at once."""
    environment = {**groundwork.environment, **changes}
    return subprocess.run(
        [groundwork_command(), "up"], env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_data_survives_a_stop_and_a_kill(fresh: Groundwork) -> None:
    with running(fresh), Api.open(fresh.base_url) as api:
        document = api.ingest("default", "handbook.md", (DATA / "handbook.md").read_bytes())
        thread_id = api.post("/v1/threads")["id"]
        told = list(api.chat("default", QUESTION, thread_id=thread_id))
        assert_complete(told)
    assert not (fresh.data_dir / "state.json").exists()

    fresh.start()
    processes = fresh.processes()
    os.kill(processes[0].pid, signal.SIGKILL)
    assert fresh.process is not None
    fresh.process.wait()
    assert_gone(processes)

    with running(fresh), Api.open(fresh.base_url) as api:
        assert [each["id"] for each in api.get("/v1/collections/default/documents")["documents"]] == [document["id"]]
        assert "two weeks" in api.qa("default", QUESTION)["answer"]
        assert api.replay(told[0].data["run_id"]) == told
        assert [each["text"] for each in api.get(f"/v1/threads/{thread_id}")["messages"]] == [
            QUESTION,
            shown_text(told),
        ]
        again = api.upload("default", "handbook.md", (DATA / "handbook.md").read_bytes())
        assert (again["id"], again["status"]) == (document["id"], "ready")


def test_keys_are_rotated_and_forgotten_while_questions_and_uploads_go_on(fresh: Groundwork) -> None:
    with running(fresh), Api.open(fresh.base_url) as api:
        api.ingest("default", "handbook.md", (DATA / "handbook.md").read_bytes())
        before = fresh.keys.public_keys_file.read_text()
        for number, verb in enumerate(["rotate", "rotate", "rotate", "forget"]):
            command = [groundwork_command(), "signing-keys", verb]
            subprocess.run(command, env=fresh.environment, check=True, capture_output=True)
            assert_complete(list(api.chat("default", QUESTION)))
            assert api.ingest("default", f"{number}.txt", f"Text {number}.".encode())["status"] == "ready"
        logs = "".join(path.read_text("utf-8", "replace") for path in (fresh.data_dir / "logs").glob("*.log"))
        for refusal in ("nats_permission_missing", "job_refused", "BAD_TOKEN", "CALL_NOT_ALLOWED"):
            assert refusal not in logs
        kept = {key["kid"] for key in json.loads(fresh.keys.public_keys_file.read_text())["keys"]}
        assert not kept & {key["kid"] for key in json.loads(before)["keys"]}
        assert len(kept) == len(json.loads(before)["keys"])


def test_a_strangers_directory_and_a_bad_setting_are_refused(fresh: Groundwork) -> None:
    fresh.data_dir.mkdir()
    (fresh.data_dir / "holiday.jpg").write_bytes(b"x")
    refused = up(fresh)
    assert refused.returncode != 0
    assert "is not empty (holiday.jpg)" in refused.stderr
    assert [each.name for each in fresh.data_dir.iterdir() if each.name != "lock"] == ["holiday.jpg"]
    wrong = up(fresh, GROUNDWORK_PORT="eighty")
    assert wrong.returncode != 0
    assert "GROUNDWORK_PORT=eighty" in wrong.stderr


def test_ctrl_c_twice_kills_everything_at_once(fresh: Groundwork) -> None:
    fresh.start()
    processes = fresh.processes()
    stuck = psutil.Process(fresh.service("orchestrator")["pid"])
    stuck.suspend()  # it will not stop by itself
    assert fresh.process is not None
    fresh.process.send_signal(signal.SIGINT)
    wait_until(lambda: "Ctrl-C again kills" in fresh.printed(), "the first Ctrl-C is acknowledged")
    fresh.process.send_signal(signal.SIGINT)
    fresh.process.wait(10)
    assert_gone(processes)
    assert "Killing" in fresh.printed()


def test_ctrl_c_while_starting_stops_what_has_started(fresh: Groundwork) -> None:
    fresh.launch()
    wait_until(lambda: fresh.terminal.exists() and "nats" in fresh.printed(), "something has started")
    processes = fresh.processes()
    assert fresh.process is not None
    fresh.process.send_signal(signal.SIGINT)
    assert fresh.process.wait(STOP_TIMEOUT_S) == 0
    assert_gone(processes)


def test_nothing_of_the_users_environment_is_needed_but_path(fresh: Groundwork) -> None:
    assert not [name for name in clean_environment() if name.startswith("GROUNDWORK_")]
    secrets = fresh.data_dir / "secrets"
    with running(fresh):
        for path in (*secrets.iterdir(), *fresh.keys.path.iterdir()):
            assert path.stat().st_mode & 0o077 == 0, path
        assert (fresh.data_dir / "state.json").stat().st_mode & 0o077 == 0
        assert fresh.data_dir.stat().st_mode & 0o077 == 0
