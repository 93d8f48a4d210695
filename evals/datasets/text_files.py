"""Reading the files that test collections come in: plain or gzipped, JSON, JSON lines, tab-separated."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evals.errors import CollectionUnusable


def read_text(path: Path) -> str:
    """The file's text, unpacked when its name ends in .gz. Raises CollectionUnusable."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return data.decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise CollectionUnusable(f"{path} cannot be read: {error}") from error


def find(folder: Path, *names: str) -> Path | None:
    """The first of these files that exists in the folder, as it is or gzipped."""
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    return None


def read_json(path: Path) -> Any:
    """The file's JSON value. Raises CollectionUnusable."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise CollectionUnusable(f"{path} is not JSON: {error}") from error


def read_json_lines(path: Path) -> Iterator[dict[str, Any]]:
    """One object a line; empty lines are skipped. Raises CollectionUnusable."""
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise CollectionUnusable(f"{path}, line {number} is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise CollectionUnusable(f"{path}, line {number} is not a JSON object")
        yield value
