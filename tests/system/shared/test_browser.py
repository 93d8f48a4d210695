"""The console in a real browser: upload, ask, read the streamed answer, open a citation."""

import asyncio
import os
import re
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, FilePayload, Locator, Page, expect

from kit.testing.openai import Reply
from tests.browsing import WAIT_MS, Visit, browser, picture, refusals_are_expected, upload_files, visiting
from tests.integration.api import Api
from tests.integration.conftest import DATA, Model
from tests.integration.scripting import calling
from tests.integration.system import Groundwork
from tests.service.tools.mail_server import MailServer

__all__ = ["browser"]
pytestmark = [pytest.mark.integration, pytest.mark.browser]
DROP = """(files) => {
  const dataTransfer = new DataTransfer();
  for (const [name, bytes] of Object.entries(files)) dataTransfer.items.add(new File([new Uint8Array(bytes)], name));
  document.body.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
}"""


@pytest.fixture
def visit(browser: Browser, system: Groundwork) -> Iterator[Visit]:
    with visiting(browser, system.base_url) as visit:
        yield visit


def upload(page: Page, name: str, media_type: str, content: bytes, collection: str = "default") -> Locator:
    """The row of a document that is uploaded on the page of documents."""
    page.goto(f"/documents?collection={collection}")
    upload_files(page, FilePayload(name=name, mimeType=media_type, buffer=content))
    page.get_by_test_id("find-document").fill(name)
    return page.get_by_test_id("document-row").filter(has_text=name)


def ask(page: Page, text: str, way: str = "documents") -> Locator:
    """Sends a question by Enter; its answer, the last of the page."""
    page.get_by_test_id(f"mode-{way}").check(force=True)
    page.get_by_test_id("question-input").fill(text)
    page.keyboard.press("Enter")
    turn = page.get_by_test_id("turn").filter(has=page.get_by_test_id("asked").filter(has_text=text)).last
    return turn.get_by_test_id("answer")


def delete(page: Page, row: Locator) -> None:
    row.get_by_role("button").click()
    page.get_by_test_id("delete").click()
    page.get_by_test_id("confirm-yes").click()
    expect(row).to_have_count(0)


def test_upload_ask_and_open_the_citation(visit: Visit, api: Api) -> None:
    page = visit.page
    collection_id = api.new_collection()
    name = "handbook of this page.md"
    row = upload(page, name, "text/markdown", (DATA / "handbook.md").read_bytes(), collection_id)
    expect(row).to_have_attribute("data-status", "ready", timeout=WAIT_MS)

    page.get_by_test_id("new-conversation").click()
    page.get_by_test_id("collection").select_option(collection_id)
    answer = ask(page, "How long is the notice period during probation?")
    expect(answer).to_contain_text("two weeks", timeout=WAIT_MS)
    expect(answer).to_have_attribute("aria-busy", "false", timeout=WAIT_MS)
    expect(page.get_by_test_id("support-status")).to_contain_text("word for word")

    answer.get_by_test_id("citation").first.click()
    passage = page.get_by_test_id("passage")
    expect(passage).to_contain_text(name)
    expect(passage.locator("mark")).to_contain_text("notice period")
    expect(passage).to_contain_text("Company bicycles")
    page.get_by_test_id("passage-close").click()
    expect(passage).to_have_count(0)

    page.goto(f"/documents?collection={collection_id}")
    delete(page, row)
    page.get_by_test_id("new-conversation").click()
    page.get_by_test_id("collection").select_option(collection_id)
    answer = ask(page, "How long is the notice period during probation?")
    expect(answer).to_contain_text(re.compile(r"I found no sure answer\.|The documents do not say\."), timeout=WAIT_MS)
    expect(answer.get_by_test_id("citation")).to_have_count(0)


def test_a_follow_up_to_documents_is_understood_until_another_conversation_begins(visit: Visit, api: Api) -> None:
    collection_id = api.new_collection()
    page = visit.page
    teams = b"Team,Payroll,Wins\nReds,82.20,97\nYankees,197.96,95\n"
    row = upload(page, "teams.csv", "text/csv", teams, collection_id)
    expect(row).to_have_attribute("data-status", "ready", timeout=WAIT_MS)
    page.get_by_test_id("new-conversation").click()
    page.get_by_test_id("collection").select_option(collection_id)
    for words in ("What was the payroll of the Yankees?", "How many wins did they have?"):
        answer = ask(page, words)
        expect(answer).to_contain_text("Yankees", timeout=WAIT_MS)
        expect(answer).to_have_attribute("aria-busy", "false", timeout=WAIT_MS)
    expect(page.get_by_test_id("turn")).to_have_count(2)
    expect(page.get_by_test_id("answer-status").last).to_contain_text(re.compile("answers? your question"))
    page.get_by_test_id("new-conversation").click()
    expect(page.get_by_test_id("turn")).to_have_count(0)
    answer = ask(page, "How many wins did they have?")
    expect(answer).to_have_attribute("aria-busy", "false", timeout=WAIT_MS)
    page.get_by_test_id("trace").locator("summary").click()
    searched = page.get_by_test_id("step").filter(has_text="Searching for")
    expect(searched).to_contain_text("Searching for “How many wins did they have?” …")


def test_chat_with_tools_shows_its_steps(visit: Visit) -> None:
    page = visit.page
    answer = ask(page, "What is 12*7?", "chat")
    expect(answer).to_contain_text("84", timeout=WAIT_MS)
    expect(answer).to_have_attribute("aria-busy", "false", timeout=WAIT_MS)  # the turn is on its thread now
    page.get_by_test_id("trace").locator("summary").click()
    step = page.get_by_test_id("step").filter(has_text="expression")
    expect(step).to_have_attribute("data-state", "ok")
    expect(step).to_contain_text("12*7")
    page.reload()
    expect(page.get_by_test_id("asked")).to_have_text("What is 12*7?", timeout=WAIT_MS)
    expect(page.get_by_test_id("answer")).to_contain_text("84")


def test_call_that_waits_is_allowed_by_a_click_and_shown_among_the_steps(
    browser: Browser, model_system: Groundwork, scripted: Model, mailbox: MailServer
) -> None:
    mail = {"to": ["carla@example.com"], "subject": "Ferry", "text": "The ferry is late."}
    scripted.will(calling(("send_email", mail)), Reply(["Carla ", "knows."]))
    with visiting(browser, model_system.base_url) as visit:
        page = visit.page
        answer = ask(page, "Tell Carla that the ferry is late.", "chat")
        question = page.get_by_test_id("turn").get_by_test_id("question")
        expect(question).to_contain_text("carla@example.com", timeout=WAIT_MS)
        assert not [recipients for recipients, _ in mailbox.delivered if recipients == mail["to"]]
        question.get_by_test_id("allow").click()
        expect(answer).to_have_text("Carla knows.", timeout=WAIT_MS)
        expect(question).to_have_count(0)
        page.get_by_test_id("trace").locator("summary").click()
        allowed = page.get_by_test_id("step").filter(has_text="send an e-mail: allowed")
        expect(allowed).to_have_attribute("data-state", "ok")
        expect(page.get_by_test_id("step").filter(has_text="Sent to carla@example.com")).to_have_count(1)
    assert len([recipients for recipients, _ in mailbox.delivered if recipients == mail["to"]]) == 1


def test_a_file_that_cannot_be_read_and_markup_in_a_name_are_shown_as_text(visit: Visit, api: Api) -> None:
    page = visit.page
    name = "<img src=x onerror=alert(1)>.pdf"
    row = upload(page, name, "application/pdf", (DATA / "encrypted.pdf").read_bytes(), api.new_collection())
    expect(row).to_have_attribute("data-status", "failed", timeout=WAIT_MS)
    expect(row).to_contain_text("protected by a password")
    delete(page, row)


def test_what_was_not_answered_is_said_with_its_reason(visit: Visit, api: Api) -> None:
    collection_id = api.new_collection()
    page = visit.page
    page.reload()
    page.get_by_test_id("collection").select_option(collection_id)
    answer = ask(page, "What is the boiling point of ethanol?")
    expect(answer).to_contain_text(re.compile(r"I found no sure answer\.|The documents do not say\."), timeout=WAIT_MS)
    expect(page.get_by_test_id("stop-button")).to_have_count(0, timeout=WAIT_MS)  # the next is not sent before
    page.get_by_test_id("question-input").fill("why " * 2001)
    page.get_by_test_id("question-input").press("Enter")
    expect(page.get_by_role("alert").filter(has_text="8000")).to_be_visible(timeout=WAIT_MS)
    refusals_are_expected(visit, status=400)


def test_the_page_fits_a_phone(visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 360, "height": 740})
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 360
    expect(visit.page.get_by_test_id("question-input")).to_be_in_viewport()


def test_of_200_dropped_files_7_bad_ones_say_why_and_the_rest_get_in(visit: Visit, api: Api) -> None:
    page, collection_id = visit.page, api.new_collection()
    bad = {
        "empty.md": (b"", "empty"),
        "nothing.html": (b"<html><script>1</script></html>", "no text"),
        "tool.exe": (b"MZ\x90\x00\x03" + bytes(range(256)), "cannot be read"),
        "locked.pdf": ((DATA / "encrypted.pdf").read_bytes(), "protected by a password"),
        "broken.pdf": (b"%PDF-1.4\nhalf a file", "save it again"),
        "broken.docx": (b"PK\x03\x04half a file", "broken"),
        "broken.png": (b"\x89PNG\r\n\x1a\nhalf a file", "broken"),
    }
    files = {f"buoy-{number}.txt": f"Buoy {number} lies off the harbour.".encode() for number in range(193)}
    files |= {name: content for name, (content, _) in bad.items()}
    page.goto(f"/documents?collection={collection_id}")
    expect(page.get_by_test_id("file-input")).to_be_enabled(timeout=WAIT_MS)
    page.evaluate(DROP, {name: list(content) for name, content in files.items()})
    uploads = page.get_by_test_id("uploads")
    expect(uploads.get_by_role("status")).to_contain_text(re.compile("files taken"), timeout=WAIT_MS)
    refused = {
        row.locator(".name").inner_text(): row.inner_text() for row in uploads.get_by_test_id("upload-row").all()
    }
    page.get_by_test_id("filter").select_option("failed")
    rows = page.get_by_test_id("document-row")
    expect(page.get_by_role("status").filter(has_text="193")).to_be_visible(timeout=WAIT_MS)
    expect(rows).to_have_count(len(bad) - len(refused), timeout=WAIT_MS)
    picture(page, "two-hundred-files")
    told = refused | {row.locator(".name").inner_text(): row.inner_text() for row in rows.all()}
    assert {name for name, (_, why) in bad.items() if why not in told[name]} == set(), told
    assert set(told) == set(bad)
    page.get_by_test_id("filter").select_option("ready")
    expect(rows.first).to_have_attribute("aria-setsize", "193", timeout=WAIT_MS)
    visit.complaints[:] = [each for each in visit.complaints if "the server responded with a status of 4" not in each]


def test_a_gateway_killed_in_mid_answer_costs_no_word_and_says_none_twice(
    browser: Browser, model_system: Groundwork, scripted: Model
) -> None:
    gate = asyncio.Event()
    words = ["The ferry ", "leaves at ", "seven, ", "and comes ", "back ", "at nine."]
    scripted.will(Reply(words, gate=gate, gate_at=3))
    with visiting(browser, model_system.base_url) as visit:
        visit.expected |= {"net::ERR_", "status of 503"}
        page = visit.page
        answer = ask(page, "When does the ferry leave?", "chat")
        expect(answer).to_contain_text("seven,", timeout=WAIT_MS)
        killed = [int(each["pid"]) for each in model_system.processes_of("gateway")]
        with page.expect_event("requestfailed", timeout=WAIT_MS):
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
        picture(page, "gateway-killed")
        scripted.open(gate)  # what comes meanwhile is read from the log of the run
        expect(answer).to_have_text("".join(words), timeout=WAIT_MS)
        expect(answer).to_have_attribute("aria-busy", "false", timeout=WAIT_MS)
        page.reload()
        expect(answer).to_have_text("".join(words), timeout=WAIT_MS)
        expect(page.get_by_test_id("turn")).to_have_count(1)
