"""The browser and mail in a whole system, asked in chats as users do; the system has no network but loopback."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.service.tools.web.test_web_attacks import ROOT, UNSHARE

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def told(models_dir: Path) -> dict[str, Any]:
    if not shutil.which("chromium") or not shutil.which("unshare") or not shutil.which("ip"):
        pytest.skip("it takes Linux with chromium, unshare and ip")
    if subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine gives no network namespaces")
    inside = [sys.executable, "-m", "tests.system.tools_inside", str(models_dir.absolute())]
    command = [*UNSHARE, "sh", "-ec", 'ip link set lo up; exec "$@"', "sh", *inside]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def test_browser_reads_drawn_pages_for_cited_answers_and_submits_what_a_person_allows(told: dict[str, Any]) -> None:
    assert {"browser_task", "browser_submit"} <= set(told["offered"])
    read = told["read"]
    assert read["failed"] == []
    first, second = read["cited"]
    assert "42 euros a night" in first["text"]
    assert second["origin"]["channel"].endswith("/winter")
    assert told["asked_before"] == ["GET /", "GET /robots.txt", "GET /winter"]
    booked = told["booked"]
    assert (told["bodies"], booked["failed"]) == (["name=Ann"], [])
    assert "booked for Ann" in booked["cited"][0]["text"]
    enclosed = [entry["enclosed"] for line in told["log"] if "enclosed" in (entry := json.loads(line))]
    assert enclosed
    assert all(enclosed)


def test_answer_from_mail_cites_the_message_as_it_was_read(told: dict[str, Any]) -> None:
    mail = told["mail"]
    assert (told["connected"], mail["failed"]) == ("anna@example.com", [])
    (cited,) = mail["cited"]
    quote = cited["text"][cited["quote_start"] : cited["quote_end"]]
    assert quote == "The pilot of the harbour costs sixty crowns"
    assert cited["origin"]["channel"].startswith("imap://127.0.0.1/INBOX;UIDVALIDITY=")
