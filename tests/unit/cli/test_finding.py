"""The names that found files get: what makes two files two documents."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.client.finding import find_files
from tests.unit.cli.conftest import FakeServer
from tests.unit.cli.test_commands import Command


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("one/docs/README.md", "one/docs/adr/README.md", "one/docs/only.md", "two/docs/README.md"):
        path = tmp_path / "work" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "work"


def _names(*paths: Path) -> list[str]:
    return [file.name for file in find_files(paths)]


def test_files_below_a_folder_are_named_from_the_folder_on(tree: Path) -> None:
    expected = ["docs/README.md", "docs/only.md", "docs/adr/README.md"]
    assert _names(tree / "one/docs") == expected
    assert _names(Path("work/one/docs/")) == expected


def test_the_folder_where_one_stands_has_its_own_name(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree / "one/docs/adr")
    assert _names(Path()) == ["adr/README.md"]
    assert _names(Path("../../../two")) == ["two/docs/README.md"]


def test_a_file_named_alone_has_its_base_name(tree: Path) -> None:
    assert _names(tree / "one/docs/README.md", tree / "one/docs/only.md") == ["README.md", "only.md"]


def test_files_of_the_same_name_take_as_many_folders_as_tell_them_apart(tree: Path) -> None:
    files = (tree / "one/docs/README.md", tree / "two/docs/README.md", tree / "one/docs/only.md")
    assert _names(*files) == ["one/docs/README.md", "two/docs/README.md", "only.md"]


def test_folders_of_the_same_name_are_told_apart_with_all_their_files(tree: Path) -> None:
    names = _names(tree / "one/docs", tree / "two/docs")
    assert names == ["one/docs/README.md", "one/docs/only.md", "one/docs/adr/README.md", "two/docs/README.md"]


def test_a_file_found_twice_is_sent_once(tree: Path) -> None:
    assert _names(tree / "two", tree / "two/docs/README.md") == ["two/docs/README.md"]


@pytest.mark.skipif(sys.platform == "darwin", reason="its file systems hold no such names")
def test_a_file_whose_name_is_no_text_is_reported_and_the_others_are_sent(
    tmp_path: Path, server: FakeServer, groundwork: Command
) -> None:
    (tmp_path / "b.md").write_text("y")
    (tmp_path / os.fsdecode(b"caf\xe9.txt")).write_text("x")
    document = {"id": "a", "status": "queued", "updated_at": "2026-01-01T00:00:00.000Z"}
    server.on("POST", "/v1/collections/default/documents", lambda http: http.json({"document": document}, 202))
    result = groundwork("ingest", "--no-wait", "--json", str(tmp_path))
    assert result.exit_code == 1
    assert len(server.asked("POST")) == 1
    told = {each["path"].rpartition("/")[2]: each["error"] for each in json.loads(result.stdout)["documents"]}
    assert told.pop("b.md") is None
    assert "rename" in told["caf\\xe9.txt"]["message"]


def test_a_folder_that_cannot_be_looked_into_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.md").write_text("x")
    scandir = os.scandir
    (tmp_path / "locked").mkdir()

    def refusing(path: str) -> Any:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    found = {file.name.rpartition("/")[2]: file.problem for file in find_files([tmp_path])}
    assert found == {"a.md": "", "locked": "Permission denied"}


def test_the_name_is_sent_with_its_folders(tree: Path, server: FakeServer, groundwork: Command) -> None:
    document = {"id": "a", "status": "queued", "updated_at": "2026-01-01T00:00:00.000Z"}
    server.on("POST", "/v1/collections/default/documents", lambda http: http.json({"document": document}, 202))
    assert groundwork("ingest", "--no-wait", str(tree / "two")).exit_code == 0
    assert b'filename="two/docs/README.md"' in server.requests[0][2]
