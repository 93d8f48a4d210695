"""A system that asks for API keys, as its operator sets it up and a user uses it: terminal, command, console, logs."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, FilePayload, expect

from tests.browsing import WAIT_MS, browser, refusals_are_expected, upload_files, visiting
from tests.integration.conftest import DATA, UNHURRIED
from tests.integration.system import Groundwork, groundwork_command, running

__all__ = ["browser"]
pytestmark = pytest.mark.integration

QUESTION = "How long is the notice period during probation?"
KEY = re.compile(r"gw_[0-9a-f]{24}_[0-9A-Za-z]{49}")


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Groundwork]:
    folder, settings = tmp_path_factory.mktemp("keys"), UNHURRIED | {"GROUNDWORK_AUTH": "api_keys"}
    with running(Groundwork(folder / "data", models_dir.absolute(), settings)) as groundwork:
        yield groundwork


@pytest.fixture(scope="module")
def operator(system: Groundwork) -> str:
    """The key that the start printed."""
    (key,) = KEY.findall(system.printed())
    return str(key)


def groundwork(system: Groundwork, key: str, *arguments: str, exit_code: int = 0) -> str:
    """What the command prints."""
    result = subprocess.run(
        [groundwork_command(), *arguments],
        env={**system.environment, "GROUNDWORK_API_KEY": key, "NO_COLOR": "1", "COLUMNS": "160"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == exit_code, f"{result.returncode}\n{result.stdout}\n{result.stderr}"
    return result.stdout if exit_code == 0 else result.stderr


def test_the_first_key_makes_others_whose_holders_use_command_and_http(system: Groundwork, operator: str) -> None:
    refused = groundwork(system, "", "documents", "list", exit_code=2)
    assert "API_KEY_MISSING" in refused
    assert "export GROUNDWORK_API_KEY" in refused
    options = ["--subject", "anna", "-s", "query", "-s", "ingest"]
    anna = groundwork(system, operator, "keys", "create", "Laptop of Anna", *options).strip()
    assert KEY.fullmatch(anna)
    ingested = json.loads(groundwork(system, anna, "ingest", str(DATA / "handbook.md"), "--json"))
    assert ingested["ready"] == 1
    assert "two weeks" in groundwork(system, anna, "ask", QUESTION)
    assert "SCOPE_MISSING" in groundwork(system, anna, "keys", "create", "Another", exit_code=1)
    listed = json.loads(groundwork(system, operator, "keys", "list", "--json"))["keys"]
    assert [(each["subject"], each["name"]) for each in listed] == [
        ("anna", "Laptop of Anna"),
        ("local-user", "bootstrap"),
    ]
    new = groundwork(system, anna, "keys", "rotate", listed[0]["id"], "--keep-old", "1h").strip()
    for key in (anna, new):
        assert httpx.get(f"{system.base_url}/v1/runs", headers={"X-API-Key": key}, trust_env=False).status_code == 200
    groundwork(system, operator, "keys", "revoke", listed[0]["id"])
    assert "API_KEY_REVOKED" in groundwork(system, new, "documents", "list", exit_code=2)
    assert "exists already" in groundwork(system, "", "keys", "bootstrap", exit_code=1)
    logs = "".join(path.read_text("utf-8", "replace") for path in (system.data_dir / "logs").iterdir())
    assert '"event": "audit"' in logs
    for key in (operator, anna, new):
        assert key.rpartition("_")[2][:40] not in logs + (system.data_dir / "state.json").read_text()


@pytest.mark.browser
def test_the_console_asks_for_a_key_keeps_it_in_the_tab_and_signs_out(
    browser: Browser, system: Groundwork, operator: str
) -> None:
    with visiting(browser, system.base_url) as visit:
        page = visit.page
        dialog = page.get_by_test_id("key-dialog")
        expect(dialog).to_be_visible(timeout=WAIT_MS)
        expect(page.get_by_test_id("key-refused")).to_be_hidden()
        page.keyboard.press("Escape")
        page.get_by_test_id("key-input").fill(operator[:-1])
        page.get_by_test_id("key-submit").click()
        expect(page.get_by_test_id("key-refused")).to_contain_text("mistyped or cut off")
        page.get_by_test_id("key-input").fill(operator)
        page.get_by_test_id("key-submit").click()
        expect(dialog).to_be_hidden()

        # A name of its own: who sees all may see what others uploaded, until the collections are listed.
        handbook = FilePayload(name="guide.md", mimeType="text/markdown", buffer=(DATA / "handbook.md").read_bytes())
        page.goto("/documents")
        upload_files(page, handbook)
        row = page.get_by_test_id("document-row").filter(has_text="guide.md").first
        expect(row).to_have_attribute("data-status", "ready", timeout=WAIT_MS)
        row.get_by_role("button").click()
        with page.expect_download() as download:
            page.get_by_test_id("download").click()
        assert download.value.suggested_filename == "guide.md"
        page.keyboard.press("Escape")
        page.get_by_test_id("new-conversation").click()
        page.get_by_test_id("question-input").fill(QUESTION)
        page.get_by_test_id("ask-button").click()
        expect(page.get_by_test_id("answer")).to_contain_text("two weeks", timeout=WAIT_MS)

        page.goto("/documents")
        expect(page.get_by_test_id("document-row").first).to_be_visible()
        expect(dialog).to_be_hidden()
        page.get_by_test_id("sign-out").click()
        expect(dialog).to_be_visible(timeout=WAIT_MS)
        assert page.evaluate("sessionStorage.getItem('groundwork.api-key')") is None
        refusals_are_expected(visit)
