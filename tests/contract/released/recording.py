"""Keeps what this version writes, for the tests of later versions: `scripts/record-release`.

What is recorded stays: records live longer than releases. So only what is missing is written, into the folder of the version that
pyproject.toml names.
"""

import sys
import tomllib
from pathlib import Path

from tests.contract.released.kinds import kinds

REPOSITORY = Path(__file__).resolve().parents[3]
FOLDER = REPOSITORY / "tests" / "data" / "released"
OPENAPI = "openapi.json"


def version() -> str:
    """Of this checkout."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    return str(project["version"])


def versions() -> list[Path]:
    """Folders of recorded releases, oldest first."""
    return sorted(
        (path for path in FOLDER.iterdir() if path.is_dir()),
        key=lambda path: [int(each) for each in path.name.split(".")],
    )


def openapi() -> bytes:
    """The document of the HTTP API as it is now; scripts/gen_docs.py keeps it true."""
    return (REPOSITORY / "docs" / OPENAPI).read_bytes()


def record() -> list[Path]:
    """Writes what is missing. Returns the new files."""
    folder = FOLDER / version()
    folder.mkdir(parents=True, exist_ok=True)
    contents = {kind.file_name: kind.write for kind in kinds()} | {OPENAPI: openapi}
    missing = {folder / name: write for name, write in contents.items() if not (folder / name).exists()}
    for path, write in missing.items():
        path.write_bytes(write())
    return sorted(missing)


if __name__ == "__main__":
    for path in record():
        sys.stdout.write(f"recorded {path.relative_to(REPOSITORY)}\n")
