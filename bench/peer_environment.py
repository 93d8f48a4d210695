"""The peer's own Python environment: made on demand in a folder that git ignores, made again when what it should hold changes."""

import hashlib
import subprocess
import sys
from pathlib import Path

ENVIRONMENT = Path("build", "peer")
REQUIREMENTS = Path(__file__).with_name("peer-requirements.txt")


def peer_python() -> Path:
    """The interpreter of the environment; installs from the package index that pip is set up with when needed (minutes)."""
    python = ENVIRONMENT / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    stamp = ENVIRONMENT / ".installed"
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()
    if not (stamp.exists() and stamp.read_text("ascii") == wanted):
        sys.stderr.write(f"installing the peer library into {ENVIRONMENT} ...\n")
        _run([sys.executable, "-m", "venv", str(ENVIRONMENT)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--requirement", str(REQUIREMENTS)])
        stamp.write_text(wanted, "ascii")
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
