"""The peer's answers are judged as ours are, and its environment is made once."""

import subprocess
from pathlib import Path

import pytest

from bench import peer_environment
from bench.peer import _peer_side
from bench.peer_environment import peer_python
from evals.models import Document, Query, TestCollection

COLLECTION = TestCollection(
    "two",
    [Document("a", "", "x"), Document("b", "", "y")],
    [Query("q1", "x"), Query("q2", "y")],
    {"q1": {"a": 1}, "q2": {"b": 1}},
)


def test_peer_is_scored_in_the_order_of_the_queries() -> None:
    answer = {
        "chunks": 2,
        "ingestion_s": 0.5,
        "answers": {"q2": ["a", "b"], "q1": ["a"]},
        "latencies_ms": {"q2": 3.0, "q1": 1.0},
    }
    side = _peer_side(answer, COLLECTION)
    assert side.ndcg == pytest.approx([1.0, 0.6309], abs=1e-4)
    assert side.latency_ms.median == 2.0


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that would make the environment, which is a folder of this test."""
    called: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        called.append(command)
        (tmp_path / "peer").mkdir(exist_ok=True)
        return subprocess.CompletedProcess(command, 0, "", "")

    requirements = tmp_path / "requirements.txt"
    requirements.write_text("library==1.0\n")
    monkeypatch.setattr(peer_environment.subprocess, "run", run)
    monkeypatch.setattr(peer_environment, "ENVIRONMENT", tmp_path / "peer")
    monkeypatch.setattr(peer_environment, "REQUIREMENTS", requirements)
    return called


def test_environment_is_made_once_and_again_for_other_versions(commands: list[list[str]]) -> None:
    peer_python()
    assert [command[1:3] for command in commands] == [["-m", "venv"], ["-m", "pip"]]
    peer_python()
    assert len(commands) == 2
    peer_environment.REQUIREMENTS.write_text("library==2.0\n")
    peer_python()
    assert len(commands) == 4


def test_failed_installation_is_not_taken_for_done(commands: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    failing = lambda command, **_: subprocess.CompletedProcess(command, 1, "", "no such version")  # noqa: E731
    monkeypatch.setattr(peer_environment.subprocess, "run", failing)
    with pytest.raises(RuntimeError, match="no such version"):
        peer_python()
    assert not (peer_environment.ENVIRONMENT / ".installed").exists()
