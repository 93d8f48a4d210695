"""What the commands for operators say when there is nothing to look at."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli.operating import message_store as commands
from kit.process.broken_pipe import READER_GONE


@pytest.fixture(autouse=True)
def no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDWORK_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("GROUNDWORK_NATS_URL", raising=False)


def test_a_directory_without_data_is_named_and_not_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (lambda: commands.backup(tmp_path / "backup.tar"), lambda: commands.doctor(accept=False)):
        assert command() == 2
        assert f"There is no data in {tmp_path / 'data'}" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_a_missing_backup_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.restore(tmp_path / "backup.tar", replace=False) == 2
    assert f"There is no backup {tmp_path / 'backup.tar'}" in capsys.readouterr().err


def test_findings_cannot_be_accepted_while_nothing_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.doctor(accept=True) == 2
    assert "Start Groundwork first" in capsys.readouterr().err


def test_an_address_left_behind_by_a_killed_system_is_not_taken_for_a_running_one(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"nats_url": "nats://x", "supervisor_pid": 4194305}')
    assert commands.running_nats_url(tmp_path) == ""
    (tmp_path / "state.json").write_text("{")
    assert commands.running_nats_url(tmp_path) == ""


def test_nothing_is_said_of_a_reader_that_has_gone() -> None:
    script = (
        "import sys\n"
        "from cli.operating.message_store import exit_code_of\n"
        "async def command(): print('one line')\n"
        "sys.exit(exit_code_of(command()))\n"
    )
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-c", script], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (READER_GONE, "")
