"""The first minute with a system that has nothing in it: the console's samples, `groundwork demo`, and what the start prints."""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from tests.browsing import WAIT_MS, browser, picture, visiting
from tests.integration.conftest import UNHURRIED
from tests.integration.system import Groundwork, groundwork_command, running
from tests.integration.test_cli import groundwork

__all__ = ["browser"]
pytestmark = [pytest.mark.integration]

REPOSITORY = Path(__file__).resolve().parents[2]
GROUNDS = {
    "When will the Skylark S3 be launched?": ("14 November 2026", "meeting-notes-2026-06-03.txt"),
    "What does error code E14 mean?": ("iced up", "skylark-s2-manual.pdf"),
    "How much does Care Plus cost?": ("149 euros", "warranty-and-returns.docx"),
    "Was kostet ein Gericht für Gäste?": ("8,50 Euro", "betriebsordnung-leipzig.md"),
}
"""Of each suggested question: words of the answer, and the document that it cites."""


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Groundwork]:
    """A system of its own: samples are offered only where there is no document at all."""
    folder = tmp_path_factory.mktemp("first-minute")
    with running(Groundwork(folder / "data", models_dir.absolute(), UNHURRIED)) as started:
        yield started


@pytest.mark.browser
def test_one_press_loads_the_samples_and_another_asks_them(browser: Browser, empty: Groundwork) -> None:
    with visiting(browser, empty.base_url) as visit:
        page = visit.page
        page.get_by_test_id("load-samples").click()
        suggestions = page.get_by_test_id("suggestion")
        expect(suggestions.first).to_be_visible(timeout=WAIT_MS)
        assert suggestions.all_text_contents() == list(GROUNDS)
        expect(page.get_by_test_id("load-samples")).to_be_hidden()
        suggestions.filter(has_text="E14").click()
        answer = page.get_by_test_id("answer")
        expect(answer).to_contain_text("iced up", timeout=WAIT_MS)
        answer.get_by_test_id("citation").first.click()
        passage = page.get_by_test_id("passage")
        expect(passage).to_contain_text("skylark-s2-manual.pdf")
        expect(passage).to_contain_text("Page 2")
        expect(passage.get_by_test_id("pdf-box").first).to_be_visible(timeout=WAIT_MS)
        picture(page, "first-cited-answer")


def test_the_curl_that_the_start_prints_is_answered_before_there_are_documents(empty: Groundwork) -> None:
    answer = _asked_by_curl(empty)
    assert (answer["answer"], answer["citations"]) == ("The documents do not say.", [])


def test_the_demo_loads_what_is_missing_and_answers(empty: Groundwork) -> None:
    first = groundwork(empty.port, "demo")
    again = groundwork(empty.port, "demo")
    assert "are there already" in again.stderr
    question, *others = GROUNDS
    words, name = GROUNDS[question]
    for shown in (first, again):
        assert words in shown.stdout
        assert f"[1] {name}" in shown.stdout
        assert all(other in shown.stderr for other in others)


@pytest.fixture(scope="module")
def loaded(empty: Groundwork) -> Groundwork:
    """The same with its samples; requested by what comes after those that want none."""
    groundwork(empty.port, "demo")
    return empty


@pytest.mark.parametrize("question", GROUNDS)
def test_suggested_questions_are_answered_from_the_right_document(loaded: Groundwork, question: str) -> None:
    told = json.loads(groundwork(loaded.port, "ask", question, "--collection", "demo", "--json").stdout)
    words, name = GROUNDS[question]
    assert (told["status"], words in told["answer"]) == ("completed", True), told["answer"]
    assert name in {each["document_name"] for each in told["citations"]}
    assert told["answer_status"] == "likely", told["answer_confidence"]


@pytest.fixture(scope="module")
def own_documents(loaded: Groundwork) -> Groundwork:
    """The same with what a new user reads of our own."""
    groundwork(loaded.port, "ingest", str(REPOSITORY / "README.md"), str(REPOSITORY / "docs" / "how-to.md"))
    return loaded


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("How do I change the port?", "GROUNDWORK_PORT"),
        ("Where is my data stored?", "data"),
        ("How do I stop Groundwork?", "Ctrl-C"),
        ("Which file formats can I upload?", "PDF, Word"),
        ("How do I delete a document?", "groundwork documents delete"),
    ],
)
def test_our_own_pages_answer_what_a_new_user_asks(own_documents: Groundwork, question: str, words: str) -> None:
    told = json.loads(groundwork(own_documents.port, "ask", question, "--json").stdout)
    assert (told["status"], words in told["answer"]) == ("completed", True), told["answer"]
    assert told["citations"]


NOT_RUN = {
    "up": "starts a system; test_supervisor and test_background do",
    "stop": "test_background does",
    "keys": "wants a start with GROUNDWORK_AUTH=api_keys, as the page says; test_keys has one",
    "restore": "wants an empty data folder; test_backup does",
}
"""Commands of docs/how-to.md that are tried elsewhere, by their first word."""


def test_commands_of_our_page_run_as_they_stand(own_documents: Groundwork, tmp_path: Path) -> None:
    for name, text in {
        "notes/a.md": "# Notes\n\nThe launch is in May.",
        "contracts/lease.txt": "The notice period of the lease is six weeks.",
        "letters/old.txt": "Szerződés",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode("iso-8859-2"))
    manual = REPOSITORY / "services" / "gateway" / "samples" / "skylark-s2-manual.pdf"
    (tmp_path / "handbook.pdf").write_bytes(manual.read_bytes())
    page = (REPOSITORY / "docs" / "how-to.md").read_text("utf-8").replace("\n", " ")
    commands = [shlex.split(each) for each in re.findall(r"`groundwork ([a-z][^`]*)`", page)]
    commands = [each for each in commands if each[0] not in NOT_RUN and each != ["ingest"]]
    assert ["ingest", "contracts/", "--collection", "contracts", "--create"] in commands
    listed = json.loads(groundwork(own_documents.port, "documents", "list", "--json").stdout)["documents"]
    known = {"…": "What is the notice period of the lease?", "ID": listed[0]["id"], "NAME": "laptop", "PERSON": "ann"}
    for command in commands:
        done = subprocess.run(
            [groundwork_command(), *(known.get(word, word) for word in command)],
            env={**own_documents.environment, "NO_COLOR": "1"},
            cwd=tmp_path,
            input="y\n",
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert "six weeks" in done.stdout or command[:2] != ["ask", "…"]


def test_the_curl_that_the_start_prints_is_answered_with_citations(own_documents: Groundwork) -> None:
    assert _asked_by_curl(own_documents)["citations"]


def _asked_by_curl(system: Groundwork) -> dict[str, Any]:
    """What the printed command answers."""
    (command,) = re.findall(r"^ +curl +(curl .+)$", system.printed(), re.MULTILINE)
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300, check=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
