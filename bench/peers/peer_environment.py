"""Python environments of the peers, made on demand in a folder that git ignores, and again when what it should hold changes."""

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def ask_peer(script: str, job: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
    """What `bench/<script>.py` answers to a job. What it needs is in `bench/<script>-requirements.txt`."""
    python = interpreter(Path("build", script), Path(__file__).with_name(f"{script}-requirements.txt"))
    with tempfile.TemporaryDirectory(prefix="groundwork-peer-") as folder:
        asked, answered = Path(folder, "job.json"), Path(folder, "answer.json")
        asked.write_text(json.dumps(job), "utf-8")
        command = [str(python), str(Path(__file__).with_name(f"{script}.py")), str(asked), str(answered)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
        if done.returncode:
            raise RuntimeError(f"the peer failed:\n{done.stderr[-3000:]}")
        answer: dict[str, Any] = json.loads(answered.read_text("utf-8"))
        return answer


def interpreter(environment: Path, requirements: Path) -> Path:
    """The interpreter of the environment; installs from the package index that pip is set up with when needed (minutes)."""
    python = environment / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    stamp = environment / ".installed"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if not (stamp.exists() and stamp.read_text("ascii") == wanted):
        sys.stderr.write(f"installing the peer library into {environment} ...\n")
        _run([sys.executable, "-m", "venv", str(environment)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--requirement", str(requirements)])
        stamp.write_text(wanted, "ascii")
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
