"""`groundwork audit`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import Result

from kit.stores.audit_chain import ChainLink, canonical, link_of, sealed
from tests.unit.cli.conftest import FakeServer, Handler

Command = Callable[..., Result]


def chain(count: int) -> list[str]:
    lines: list[str] = []
    link = ChainLink()
    for number in range(1, count + 1):
        fields = {
            "at": f"2026-11-28T00:00:{number:02d}.000Z",
            "action": "request",
            "subject": "anna",
            "address": "192.0.2.7",
            "method": "DELETE",
            "route": "/v1/documents/{document_id}",
            "about": {"document_id": "d0000001"},
            "status": 204,
        }
        lines.append(canonical(sealed(fields, link)))
        link = link_of(lines[-1])
    return lines


@pytest.fixture
def log(server: FakeServer) -> list[str]:
    """What the server has, which a test may harm."""
    lines = chain(5)

    def answer(http: Handler) -> None:
        after = int(parse_qs(urlsplit(http.path).query).get("after", ["0"])[0])
        http.stream(*(f"{line}\n".encode() for line in lines if json.loads(line)["number"] > after))

    server.on("GET", "/v1/audit", answer)
    return lines


def test_entries_are_listed(server: FakeServer, groundwork: Command, log: list[str]) -> None:
    listed = groundwork("audit", "list", "--since", "7d", "--tenant", "acme")
    head, *rows = listed.stdout.splitlines()
    assert head.split() == ["number", "at", "who", "from", "what", "about", "status"]
    assert rows[4].split() == [
        "5",
        "2026-11-28T00:00:05.000Z",
        "anna",
        "192.0.2.7",
        "DELETE",
        "/v1/documents/{document_id}",
        "d0000001",
        "204",
    ]
    asked = parse_qs(urlsplit(server.requests[0][1]).query)
    assert (asked["tenant_id"], asked["chain"]) == (["acme"], ["tenant"])
    assert asked["since"][0].endswith("+00:00")
    found = json.loads(groundwork("audit", "list", "--since", "2026-01-31", "--json").stdout)["entries"]
    assert found == [json.loads(line) for line in log]
    assert "since=2026-01-31" in server.requests[1][1]


def test_file_is_exported_continued_and_verified(groundwork: Command, log: list[str], tmp_path: Path) -> None:
    file, whole = tmp_path / "audit.jsonl", list(log)
    del log[3:]
    made = groundwork("audit", "export", str(file))
    assert (made.exit_code, made.stdout[:39]) == (0, "3 new entries; entries 1 to 3 are whole")
    assert file.stat().st_mode & 0o777 == 0o600
    log[:] = whole
    assert groundwork("audit", "export", str(file)).stdout.startswith("2 new entries")
    assert groundwork("audit", "export", str(file)).stdout.startswith("0 new entries")
    assert file.read_text().splitlines() == whole
    verified = groundwork("audit", "verify", str(file))
    assert (verified.exit_code, link_of(whole[4]).hash in verified.stdout) == (0, True)
    assert groundwork("audit", "verify").stdout == verified.stdout


def test_export_that_was_cut_off_in_a_line_is_continued(groundwork: Command, log: list[str], tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    file.write_text(cut := f"{log[0]}\n{log[1][:40]}")
    told = groundwork("audit", "verify", str(file))
    assert (told.exit_code, "at its end is cut off" in told.stderr, file.read_text()) == (1, True, cut)
    assert groundwork("audit", "export", str(file)).exit_code == 0
    assert file.read_text().splitlines() == log


def test_harm_ends_verify_with_1_and_says_what_was_harmed(groundwork: Command, log: list[str], tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    groundwork("audit", "export", str(file))
    file.write_text(file.read_text().replace("anna", "eve", 1))
    told = groundwork("audit", "verify", str(file))
    assert (told.exit_code, "entry 1 was changed" in told.stderr) == (1, True)
    del log[2]
    told = groundwork("audit", "verify")
    assert (told.exit_code, "entry 3 is missing" in told.stderr) == (1, True)


def test_log_that_was_written_anew_does_not_continue_a_file(
    groundwork: Command, log: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "audit.jsonl"
    groundwork("audit", "export", str(file))
    before = file.read_text()
    link, forged = ChainLink(), []
    for line in log:
        fields = {name: each for name, each in json.loads(line).items() if name not in ("number", "previous", "hash")}
        forged.append(canonical(sealed({**fields, "subject": "eve"}, link)))
        link = link_of(forged[-1])
    log[:] = forged
    assert groundwork("audit", "verify").exit_code == 0  # in itself it is right
    told = groundwork("audit", "export", str(file))
    assert (told.exit_code, "does not continue the file" in told.stderr) == (1, True)
    del log[3:]
    told = groundwork("audit", "export", str(file))
    assert (told.exit_code, "ends before entry 5" in told.stderr) == (1, True)
    assert file.read_text() == before


def test_log_whose_beginning_has_expired_is_whole_and_says_so(groundwork: Command, log: list[str]) -> None:
    del log[:2]
    told = groundwork("audit", "verify")
    assert told.exit_code == 0
    assert "entries 3 to 5 are whole" in told.stdout
    assert "Earlier entries have expired, or were removed" in told.stdout
    del log[:]
    assert groundwork("audit", "verify").stdout == "the log is empty.\n"


def test_file_that_is_not_there_is_told(groundwork: Command, tmp_path: Path) -> None:
    told = groundwork("audit", "verify", str(tmp_path / "none"))
    assert (told.exit_code, "cannot be read" in told.stderr) == (2, True)
