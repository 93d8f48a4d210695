"""Programs of npm that tests need, installed once from a lock file into `.tools`."""

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

_INSTALLED = Path(__file__).parents[1] / ".tools"


def installed(source: Path) -> Path:
    """A folder with what lies in `source` and the packages of its `package-lock.json`. Skips the test where npm is not there."""
    if not shutil.which("npm"):
        pytest.skip(f"npm is not here, which installs what {source.name} needs")
    digest = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()[:12]
    folder = _INSTALLED / f"{source.name}-{digest}"
    _INSTALLED.mkdir(exist_ok=True)
    with (_INSTALLED / f"{source.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.copytree(source, folder, dirs_exist_ok=True)
        if not (folder / "node_modules" / ".package-lock.json").exists():
            done = subprocess.run(
                ["npm", "ci", "--ignore-scripts"], cwd=folder, capture_output=True, text=True, check=False
            )
            if done.returncode:
                pytest.skip(f"what {source.name} needs could not be installed: {done.stderr[-300:]}")
    return folder
