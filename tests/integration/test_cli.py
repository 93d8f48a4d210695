"""The `groundwork` command against a running system."""

import json
import subprocess
from pathlib import Path

import pytest

from kit.testing.harness import free_port
from tests.integration.api import Api
from tests.integration.conftest import DATA
from tests.integration.system import Groundwork, clean_environment, groundwork_command

pytestmark = pytest.mark.integration


def groundwork(port: int, *arguments: str, exit_code: int = 0, given: str = "") -> "subprocess.CompletedProcess[str]":
    """Runs the command as a user does, and checks how it ended."""
    result = subprocess.run(
        [groundwork_command(), *arguments],
        env=clean_environment(GROUNDWORK_PORT=str(port), NO_COLOR="1", COLUMNS="160"),
        input=given,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == exit_code, f"{result.returncode}\n{result.stdout}\n{result.stderr}"
    assert "Traceback" not in result.stderr
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as users have it: files in subfolders, a hidden one, one that cannot be read."""
    root = tmp_path_factory.mktemp("cli") / "papers"
    (root / "deep" / "er").mkdir(parents=True)
    (root / "handbook.md").write_bytes((DATA / "handbook.md").read_bytes())
    (root / "deep" / "er" / "lighthouse.txt").write_bytes((DATA / "lighthouse.txt").read_bytes())
    (root / ".hidden.txt").write_text("The hidden word is swordfish.")
    return root


def test_a_folder_is_ingested_and_questions_are_answered_from_it(
    system: Groundwork, api: Api, collection: str, folder: Path
) -> None:
    port = system.port
    ingested = json.loads(groundwork(port, "ingest", str(folder), "-c", collection, "--json").stdout)
    assert (ingested["ready"], ingested["failed"]) == (2, 0)

    asked = groundwork(port, "ask", "How long is the notice period during probation?", "-c", collection)
    assert "two weeks" in asked.stdout
    assert "[1] papers/handbook.md" in asked.stdout
    answer = json.loads(groundwork(port, "ask", "When was the light switched off?", "-c", collection, "--json").stdout)
    assert answer["status"] == "completed"
    assert "1986" in answer["answer"]
    assert answer["citations"][0]["document_name"] == "papers/deep/er/lighthouse.txt"

    gold = folder.parent / "gold.jsonl"
    known = {"question": "When was the light switched off?", "documents": ["papers/deep/er/lighthouse.txt"]}
    gold.write_text(f"{json.dumps(known)}\n{json.dumps({**known, 'documents': ['nowhere.pdf']})}\n")
    measured = groundwork(port, "evaluate", str(gold), "-c", collection, "--fail-under", "hit@1=0.6", exit_code=1)
    assert "FAILED: hit@1 is 0.5, below 0.6" in measured.stderr
    assert "not found: When was the light switched off? (nowhere.pdf)" in measured.stdout
    groundwork(port, "evaluate", str(gold), "-c", collection, "--fail-under", "hit@1=0.5")

    found = json.loads(groundwork(port, "search", "bicycle", "-c", collection, "-k", "2", "--json").stdout)
    assert found["hits"][0]["document_name"] == "papers/handbook.md"
    explained = groundwork(port, "search", "bicycle", "-c", collection, "--explain").stdout
    assert "lexical #1" in explained

    listed = json.loads(groundwork(port, "documents", "list", "-c", collection, "--json").stdout)["documents"]
    assert {each["name"] for each in listed} == {"papers/handbook.md", "papers/deep/er/lighthouse.txt"}
    (gone,) = (each["id"] for each in listed if each["name"] == "papers/handbook.md")
    assert gone in groundwork(port, "documents", "delete", gone, "--yes").stdout
    assert [each["name"] for each in api.get(f"/v1/collections/{collection}/documents")["documents"]] == [
        "papers/deep/er/lighthouse.txt"
    ]
    refused = groundwork(port, "ask", "How long is the notice period during probation?", "-c", collection, exit_code=3)
    assert "I found no sure answer." in refused.stdout or "The documents do not say." in refused.stdout


def test_a_chat_shows_its_tools_and_keeps_a_thread(system: Groundwork, api: Api) -> None:
    once = groundwork(system.port, "chat", "What is 12*7?", "--tool", "math_eval")
    assert "84" in once.stdout
    assert '→ calculate (expression="12*7")' in once.stderr
    before = {each["id"] for each in api.get("/v1/threads")["threads"]}
    conversation = groundwork(system.port, "chat", "--json", given="What is 2+2?\nWhat is 3*3?\n")
    told = [json.loads(line) for line in conversation.stdout.splitlines()]
    assert ["4" in told[0]["answer"], "9" in told[1]["answer"]] == [True, True]
    (thread,) = {each["id"] for each in api.get("/v1/threads")["threads"]} - before
    assert {each["thread_id"] for each in told} == {thread}
    listed = json.loads(groundwork(system.port, "tools", "--json").stdout)["tools"]
    assert {"math_eval", "time_now"} <= {each["name"] for each in listed}
    assert groundwork(system.port, "approvals").stdout == "Nothing waits for a decision.\n"


def test_a_file_that_fails_is_named_with_its_reason(system: Groundwork, collection: str, tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("The dredger is called Nordsee.")
    (tmp_path / "secret.pdf").write_bytes((DATA / "encrypted.pdf").read_bytes())
    result = groundwork(system.port, "ingest", str(tmp_path), "-c", collection, exit_code=1)
    assert "1 ready, 1 failed" in result.stdout
    assert "secret.pdf" in result.stdout
    assert "PDF_ENCRYPTED" in result.stdout


def test_status_tells_the_state_of_every_service(system: Groundwork) -> None:
    answer = json.loads(groundwork(system.port, "status", "--json").stdout)
    assert {each["state"] for each in answer["services"].values()} == {"serving"}
    assert "is ready" in groundwork(system.port, "status").stdout


def test_what_cannot_be_done_is_said_without_a_traceback(system: Groundwork) -> None:
    nobody = groundwork(free_port(), "status", exit_code=2)
    assert "No Groundwork answers" in nobody.stderr
    missing = groundwork(system.port, "ingest", "/no/such/file", exit_code=2)
    assert "/no/such/file does not exist" in missing.stderr
    unknown = groundwork(system.port, "documents", "show", "0" * 32, exit_code=1)
    assert "DOCUMENT_NOT_FOUND" in unknown.stderr
    nowhere = groundwork(system.port, "ask", "Anything?", "-c", "nowhere", exit_code=1)
    assert "COLLECTION_NOT_FOUND" in nowhere.stderr
    nowhere = groundwork(system.port, "ingest", str(DATA / "handbook.md"), "-c", "nowhere", exit_code=1)
    assert "COLLECTION_NOT_FOUND" in nowhere.stderr


def test_an_installation_is_tried_out_by_one_document(system: Groundwork, api: Api) -> None:
    said = groundwork(system.port, "cluster", "test").stdout
    assert "It cites the passage of lighthouse.txt that says '213 steps'." in said
    assert said.rstrip().endswith("It works.")
    collections = json.loads(groundwork(system.port, "collections", "list", "--json").stdout)["collections"]
    assert not [each for each in collections if each["id"].startswith("installation-test")]
