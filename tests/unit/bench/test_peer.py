"""The peer's answers are judged as ours are, and its environment is made once."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.peers import peer_environment
from bench.peers.peer import _peer_side
from bench.peers.peer_environment import interpreter
from evals.datasets.models import Document, Query, TestCollection

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


@dataclass(frozen=True)
class _Peer:
    """An environment whose commands are noted and not run."""

    environment: Path
    requirements: Path
    commands: list[list[str]]

    def make(self) -> None:
        interpreter(self.environment, self.requirements)


@pytest.fixture
def peer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Peer:
    peer = _Peer(tmp_path / "peer", tmp_path / "requirements.txt", [])

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        peer.commands.append(command)
        peer.environment.mkdir(exist_ok=True)
        return subprocess.CompletedProcess(command, 0, "", "")

    peer.requirements.write_text("library==1.0\n")
    monkeypatch.setattr(peer_environment.subprocess, "run", run)
    return peer


def test_environment_is_made_once_and_again_for_other_versions(peer: _Peer) -> None:
    peer.make()
    assert [command[1:3] for command in peer.commands] == [["-m", "venv"], ["-m", "pip"]]
    peer.make()
    assert len(peer.commands) == 2
    peer.requirements.write_text("library==2.0\n")
    peer.make()
    assert len(peer.commands) == 4


def test_failed_installation_is_not_taken_for_done(peer: _Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = lambda command, **_: subprocess.CompletedProcess(command, 1, "", "no such version")  # noqa: E731
    monkeypatch.setattr(peer_environment.subprocess, "run", failing)
    with pytest.raises(RuntimeError, match="no such version"):
        peer.make()
    assert not (peer.environment / ".installed").exists()
