"""`groundwork signing-keys`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from kit.access import key_folder
from kit.access.keys import parse_public_keys
from ops.signers import SIGNERS


@pytest.fixture(autouse=True)
def _nobody_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_folder, "_UNTIL_ALL_KNOW_S", 0.0)


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["signing-keys", *arguments])
    return result.exit_code, result.output


def kids(folder: Path) -> dict[str, str]:
    return {signer: json.loads((folder / f"{signer}.json").read_text())["kid"] for signer in SIGNERS}


def published(folder: Path) -> set[str]:
    return set(parse_public_keys((folder / "public.json").read_text()))


def test_keys_are_made_rotated_and_forgotten(tmp_path: Path) -> None:
    folder = tmp_path / "keys"
    code, said = run("rotate", "--folder", str(folder))
    assert code == 0
    assert "stay valid until the next rotation" in said
    first = kids(folder)
    assert run("rotate", "gateway", "--folder", str(folder))[0] == 0
    second = kids(folder)
    assert [signer for signer in SIGNERS if first[signer] != second[signer]] == ["gateway"]
    assert {*first.values(), *second.values()} <= published(folder)
    code, said = run("forget", "gateway", "--folder", str(folder))
    assert "are void" in said
    assert published(folder) == set(second.values())
    assert kids(folder) == second


def test_missing_keys_are_made_and_present_ones_stay(tmp_path: Path) -> None:
    assert run("ensure", "--folder", str(tmp_path))[0] == 0
    first = kids(tmp_path)
    (tmp_path / "gateway.json").unlink()
    (tmp_path / "public.json").write_text('{"keys": []}')
    code, said = run("ensure", "--folder", str(tmp_path))
    assert code == 0
    assert "All signers have keys" in said
    second = kids(tmp_path)
    assert [signer for signer in SIGNERS if first[signer] != second[signer]] == ["gateway"]
    assert published(tmp_path) == set(second.values())


def test_the_data_directorys_keys_are_meant_unless_a_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDWORK_DATA_DIR", str(tmp_path))
    assert run("rotate")[0] == 0
    assert published(tmp_path / "secrets" / "keys") >= set(kids(tmp_path / "secrets" / "keys").values())


def test_who_signs_nothing_and_a_folder_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    code, said = run("forget", "reranker", "--folder", str(tmp_path))
    assert code == 2
    assert "reranker signs nothing" in said
    (tmp_path / "file").touch()
    code, said = run("rotate", "--folder", str(tmp_path / "file"))
    assert code == 2
    assert "cannot be written" in said
