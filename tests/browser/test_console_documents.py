"""The console's documents, passages and words about the server in a real browser; the services behind the gateway are scripted."""

from collections.abc import Iterator
from typing import Any

import pytest
from groundwork.ingest.v1 import ingest_pb2
from groundwork.orchestrator.v1 import orchestrator_pb2 as run_pb
from groundwork.retriever.v1 import retriever_pb2
from playwright.sync_api import Browser, Dialog, Page, Route, expect

from kit.errors import Unavailable
from tests.browser.test_console import Site, site
from tests.browsing import Visit, browser, refusals_are_expected, visiting
from tests.service.gateway.fakes import RUN_ID, answered_run, chunk, document, event

__all__ = ["browser", "site"]
pytestmark = [pytest.mark.browser]

COLLECTIONS = [
    {"id": each, "name": each, "created_at": None, "owner": "local-user", "visibility": "private"}
    for each in ("default", "recipes")
]
HEBREW, ARABIC = "שלום עולם", "مرحبا بالعالم"
TARGETS = """() => [...document.querySelectorAll("button, a[href], select, summary, .modes label, .collection label")]
    .filter((each) => each.checkVisibility() && !each.matches(".skip"))
    .map((each) => [each.outerHTML.slice(0, 90), each.getBoundingClientRect()])
    .filter(([, box]) => box.width < 24 || box.height < 24)
    .map(([html, box]) => `${html} ${box.width} x ${box.height}`)"""


def put(site: Site, *documents: ingest_pb2.Document) -> None:
    """Stores them before the page is opened."""
    site.world.ingest.documents = {each.document_id: each for each in documents}


def ready(number: int, **fields: Any) -> ingest_pb2.Document:
    return document(document_id=f"d{number:07}", status=ingest_pb2.DOCUMENT_STATUS_READY, **fields)


@pytest.fixture
def visit(browser: Browser, site: Site) -> Iterator[Visit]:
    def prepare(page: Page) -> None:
        page.route("**/v1/collections", lambda route: route.fulfill(json={"collections": COLLECTIONS}))

    with visiting(browser, site.base_url, prepare) as visit:
        yield visit


def ask(page: Page, text: str = "How long?") -> None:
    page.get_by_test_id("question-input").fill(text)
    page.get_by_test_id("ask-button").click()
    expect(page.get_by_test_id("answer")).to_have_attribute("aria-busy", "false")


def direction(page: Page, selector: str) -> list[str]:
    """Direction and alignment that an element has in the end."""
    script = "(each) => [getComputedStyle(each).direction, getComputedStyle(each).textAlign]"
    words: list[str] = page.locator(selector).first.evaluate(script)
    return words


def asked(site: Site) -> list[tuple[str, str, str]]:
    """What was asked: words, collection and thread."""
    return [(each.question, each.collection_ids[0], each.thread_id) for each in site.world.orchestrator.requests]


def test_questions_to_documents_are_one_conversation_until_another_begins(visit: Visit, site: Site) -> None:
    site.world.memory.thread_ids = ["a" * 12, "b" * 12, "c" * 12, "d" * 12]
    page = visit.page
    another = page.get_by_test_id("new-conversation")
    expect(another).to_be_hidden()
    ask(page, "Payroll of the Yankees?")
    expect(page.get_by_test_id("question-input")).to_have_value("")
    ask(page, "And the Reds?")
    expect(page.get_by_test_id("answer")).to_contain_text("Four weeks")
    another.click()
    expect(page.locator("#answer-card")).to_be_hidden()
    expect(another).to_be_hidden()
    expect(page.get_by_test_id("question-input")).to_be_focused()
    ask(page, "How long?")
    page.get_by_label("Collection", exact=True).select_option("recipes")
    expect(page.locator("#answer-card")).to_be_hidden()
    ask(page, "Which soup?")
    page.reload()
    expect(another).to_be_hidden()
    ask(page, "How long is it?")
    assert asked(site) == [
        ("Payroll of the Yankees?", "default", "a" * 12),
        ("And the Reds?", "default", "a" * 12),
        ("How long?", "default", "b" * 12),
        ("Which soup?", "recipes", "c" * 12),
        ("How long is it?", "default", "d" * 12),
    ]
    assert {each.mode for each in site.world.orchestrator.requests} == {run_pb.RUN_MODE_GROUNDED}


def test_who_sees_all_asks_their_own_collection_and_not_the_only_one_that_is_listed(visit: Visit, site: Site) -> None:
    page = visit.page
    theirs = {**COLLECTIONS[1], "id": "default-0000aaaa", "owner": "anna"}
    page.route("**/v1/collections", lambda route: route.fulfill(json={"collections": [theirs]}))
    own = {**COLLECTIONS[0], "id": "default-0000bbbb"}
    page.route("**/v1/collections/default", lambda route: route.fulfill(json=own))
    with page.expect_response("**/v1/collections/default"):
        page.reload()
    ask(page)
    (asked,) = site.world.orchestrator.requests
    assert list(asked.collection_ids) == ["default"]


def test_documents_and_tools_have_conversations_of_their_own(visit: Visit, site: Site) -> None:
    site.world.memory.thread_ids = ["a" * 12, "b" * 12]
    page = visit.page
    ask(page, "How long?")
    page.get_by_test_id("mode-chat").check(force=True)
    expect(page.get_by_test_id("all-collections")).to_have_text("All collections are searched.")
    ask(page, "Mail it")
    page.get_by_test_id("mode-documents").check(force=True)
    expect(page.get_by_test_id("all-collections")).to_be_hidden()
    ask(page, "And then?")
    assert [each.thread_id for each in site.world.orchestrator.requests] == ["a" * 12, "b" * 12, "a" * 12]


def test_a_run_that_is_left_is_not_shown_in_the_conversation_after_it(visit: Visit, site: Site) -> None:
    orchestrator = site.world.orchestrator
    orchestrator.pause_after = 3
    page = visit.page
    page.get_by_test_id("question-input").fill("How long?")
    page.get_by_test_id("ask-button").click()
    expect(page.get_by_test_id("stop-button")).to_be_enabled()
    page.get_by_label("Collection", exact=True).select_option("recipes")
    expect(page.locator("#answer-card")).to_be_hidden()
    expect(page.get_by_test_id("stop-button")).to_be_hidden()
    assert page.evaluate("sessionStorage.getItem('groundwork.run')") is None
    site.soon(lambda: vars(orchestrator).update(pause_after=None))
    site.soon(orchestrator.resume.set)
    ask(page, "Which soup?")
    expect(page.locator("#answer-card")).to_be_visible()
    assert [each[1] for each in asked(site)] == ["default", "recipes"]
    assert not orchestrator.cancelled


def test_a_question_that_goes_on_over_a_reload_keeps_its_collection_and_conversation(visit: Visit, site: Site) -> None:
    orchestrator = site.world.orchestrator
    started = run_pb.RunStarted(
        mode=run_pb.RUN_MODE_GROUNDED, question="Which soup?", collection_ids=["recipes"], thread_id="a" * 12
    )
    orchestrator.log[0], orchestrator.pause_after = event(1, run=started), 3
    site.world.memory.thread_ids = ["a" * 12]
    page = visit.page
    chosen = page.get_by_label("Collection", exact=True)
    chosen.select_option("recipes")
    page.get_by_test_id("question-input").fill("Which soup?")
    page.get_by_test_id("ask-button").click()
    expect(page.get_by_test_id("stop-button")).to_be_enabled()
    page.reload()
    expect(page.locator("#asked")).to_have_text("Which soup?")
    expect(chosen).to_have_value("recipes")
    with page.expect_response(f"**/v1/runs/{RUN_ID}/cancel"):
        page.get_by_test_id("stop-button").click()
    site.soon(orchestrator.resume.set)
    expect(page.get_by_test_id("answer")).to_have_text("Four weeks1.")
    assert orchestrator.cancelled == [RUN_ID]
    ask(page, "And then?")
    assert asked(site) == [("Which soup?", "recipes", "a" * 12), ("And then?", "recipes", "a" * 12)]


def test_a_question_without_the_memory_of_conversations_is_answered_and_says_so(visit: Visit, site: Site) -> None:
    site.world.memory.failure = Unavailable("the memory does not answer")
    page = visit.page
    ask(page)
    expect(page.get_by_test_id("answer")).to_contain_text("Four weeks")
    expect(page.locator("#notes")).to_contain_text("will be read by itself")
    expect(page.get_by_test_id("new-conversation")).to_be_hidden()
    site.world.memory.failure = None
    ask(page, "How long is it?")
    assert [each[2] for each in asked(site)] == ["", "0123456789ab"]
    refusals_are_expected(visit, status=503)


def test_a_conversation_that_is_gone_is_begun_anew_and_says_so(visit: Visit, site: Site) -> None:
    site.world.memory.thread_ids = ["a" * 12, "b" * 12]
    page = visit.page
    ask(page)
    site.world.memory.gone.add("a" * 12)
    ask(page, "And then?")
    expect(page.locator("#notes")).to_contain_text("this question was read by itself")
    assert [each[2] for each in asked(site)] == ["a" * 12, "b" * 12]
    refusals_are_expected(visit, status=404)


def test_a_refused_question_stays_to_be_mended(visit: Visit, site: Site) -> None:
    page = visit.page
    page.get_by_test_id("question-input").fill("why " * 2001)
    page.keyboard.press("Enter")
    expect(page.locator("#answer-problem")).to_contain_text("8000")
    expect(page.get_by_test_id("question-input")).to_have_value(("why " * 2001).strip())
    assert not asked(site)
    refusals_are_expected(visit, status=400)


def test_documents_are_those_of_the_chosen_collection(visit: Visit, site: Site) -> None:
    put(site, ready(1, name="leave.md"), ready(2, name="soup.md", collection_id="recipes"))
    page = visit.page
    page.reload()
    rows = page.get_by_test_id("document-row")
    expect(rows).to_contain_text(["leave.md"])
    expect(rows).to_have_count(1)
    page.get_by_label("Collection", exact=True).select_option("recipes")
    expect(rows).to_contain_text(["soup.md"])
    expect(rows).to_have_count(1)
    page.get_by_test_id("mode-chat").check(force=True)
    expect(rows).to_have_count(2)


def test_many_documents_scroll_within_their_list(visit: Visit, site: Site) -> None:
    put(site, *(ready(number, name=f"{number}.md") for number in range(130)))
    page = visit.page
    page.reload()
    rows = page.get_by_test_id("document-row")
    expect(rows).to_have_count(130)
    assert page.evaluate("document.documentElement.scrollHeight") < 2 * page.evaluate("innerHeight")
    last = rows.last.get_by_role("link", name="Download")
    last.focus()
    expect(last).to_be_in_viewport()


def test_a_long_name_is_cut_in_its_middle(visit: Visit, site: Site) -> None:
    name = "docs/adr/0020-token-vectors-of-long-passages-are-kept-on-disk.md"
    put(site, ready(1, name=name))
    page = visit.page
    page.reload()
    shown = page.locator(".documents .name")
    expect(shown).to_have_text(name)
    expect(shown).to_have_attribute("title", name)
    start, end = shown.locator(".name-start"), shown.locator(".name-end")
    expect(end).to_have_text("ept-on-disk.md")
    assert start.evaluate("(each) => each.scrollWidth > each.clientWidth"), "the start is what is cut"
    head, box = page.locator(".documents .row-head").bounding_box(), end.bounding_box()
    assert head
    assert box
    assert box["x"] + box["width"] <= head["x"] + head["width"], "the end is seen"
    assert shown.evaluate("(each) => each.scrollWidth <= each.clientWidth")


def test_another_try_is_offered_only_where_it_may_help(visit: Visit, site: Site) -> None:
    failed = ingest_pb2.DOCUMENT_STATUS_FAILED
    put(
        site,
        *(
            document(
                name=reason, document_id=f"d{number:07}", status=failed, error={"reason": reason, "message": reason}
            )
            for number, reason in enumerate(["PDF_ENCRYPTED", "EMPTY_FILE", "UNSUPPORTED_TYPE", "PARSER_STOPPED"])
        ),
        ready(9, name="as before", error={"reason": "PDF_ENCRYPTED", "message": "the new version has a password"}),
        ready(10, name="fine"),
    )
    page = visit.page
    page.reload()
    rows = page.get_by_test_id("document-row")
    expect(rows).to_have_count(6)
    with_retry = rows.filter(has=page.get_by_role("button", name="Try again"))
    expect(with_retry).to_have_count(1)
    expect(with_retry).to_contain_text("PARSER_STOPPED")


def test_a_delete_button_says_what_its_next_press_does(visit: Visit, site: Site) -> None:
    put(site, ready(1, name="leave.md"))
    page = visit.page
    page.reload()
    row = page.get_by_test_id("document-row")
    row.get_by_role("button", name="Delete leave.md", exact=True).click()
    armed = row.get_by_role("button", name="Press again to delete leave.md", exact=True)
    expect(armed).to_have_text("Press again to delete leave.md")
    page.get_by_test_id("question-input").focus()
    expect(row.get_by_role("button", name="Delete leave.md", exact=True)).to_have_text("Delete")
    assert "d0000001" in site.world.ingest.documents


def test_right_to_left_words_begin_on_the_right(visit: Visit, site: Site) -> None:
    put(site, ready(1, name=f"{HEBREW}.md"))
    log = answered_run()
    log[5].answer.text = f"{ARABIC} [1]."
    log[5].answer.citations[0].document_name = f"{HEBREW}.md"
    log[5].answer.citations[0].text = ARABIC
    log[0].run.question = HEBREW
    site.world.orchestrator.log = log
    page = visit.page
    page.reload()
    ask(page, HEBREW)
    page.get_by_test_id("source").wait_for()
    page.get_by_test_id("question-input").fill(HEBREW)
    for selector in ("#question", "#asked", "#answer", ".source", ".documents .name"):
        assert direction(page, selector) == ["rtl", "start"], selector
    asked, answer = (page.locator(each).bounding_box() for each in ("#asked", "#answer"))
    assert asked
    assert answer
    assert answer["x"] + answer["width"] == pytest.approx(asked["x"] + asked["width"]), "both begin at the same edge"
    name, row = (page.locator(each).bounding_box() for each in (".documents .name", ".documents .row-head"))
    assert name
    assert row
    assert name["width"] > row["width"] / 2, "it has room to be aligned in"
    page.get_by_test_id("source").click()
    for selector in ("#passage-title", ".passage-text:not(.around)"):
        assert direction(page, selector) == ["rtl", "start"], selector


def test_sharing_a_collection_asks_first(visit: Visit, site: Site) -> None:
    put(site, ready(1, collection_id="recipes"))
    page = visit.page
    page.reload()
    page.get_by_label("Collection", exact=True).select_option("recipes")
    shared = page.get_by_test_id("shared")
    asked: list[str] = []

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.accept() if len(asked) > 1 else dialog.dismiss()

    page.on("dialog", answer)
    shared.click()
    expect(shared).not_to_be_checked()
    shared.click()
    expect(shared).to_be_checked()
    assert all("reads all of its documents" in each for each in asked)
    shared.click()  # taking it back needs no question
    expect(shared).not_to_be_checked()
    assert len(asked) == 2


@pytest.mark.parametrize("width", [860, 960, 1280, 1600])
def test_the_hint_below_a_question_is_shown_whole_beside_all_else(visit: Visit, site: Site, width: int) -> None:
    put(site, ready(1, collection_id="recipes"))
    page = visit.page
    page.set_viewport_size({"width": width, "height": 800})
    page.reload()
    page.get_by_label("Collection", exact=True).select_option("recipes")
    expect(page.get_by_test_id("shared")).to_be_visible()
    # All at once: what is above may grow between two looks.
    boxes = page.evaluate(
        """() => [...document.querySelectorAll("#question-hint span, #question-hint")]
          .map((part) => [part, part.matches("span") ? part.closest("#question-hint") : part.closest(".ask-bar")])
          .map((pair) => pair.map((each) => each.getBoundingClientRect().toJSON()))"""
    )
    assert len(boxes) > 1
    for inner, outer in boxes:
        assert outer["left"] <= inner["left"]
        assert inner["right"] <= outer["right"]
        assert outer["top"] <= inner["top"]
        assert inner["bottom"] <= outer["bottom"]


def test_what_neighbouring_passages_share_is_shown_once(visit: Visit, site: Site) -> None:
    text = "Alpha one. Beta two. Gamma three. Delta four. Epsilon 𝄞 five."

    def part(chunk_id: str, begin: str, end: str) -> retriever_pb2.Chunk:
        start, stop = text.index(begin), text.index(end) + len(end)
        return chunk(chunk_id, text=text[start:stop], char_start=start, char_end=stop)

    window = retriever_pb2.ChunkWindow(
        chunk=part("c1", "Beta", "four."), before=[part("c0", "Alpha", "two.")], after=[part("c2", "Delta", "five.")]
    )

    site.world.retriever.window = window
    log = answered_run()
    log[5].answer.citations[0].text = window.chunk.text
    site.world.orchestrator.log = log
    page = visit.page
    ask(page)
    page.get_by_test_id("source").click()
    paragraphs = page.get_by_test_id("passage").locator(".passage-text")
    expect(paragraphs).to_have_text(["Alpha one.", "Beta two. Gamma three. Delta four.", "Epsilon 𝄞 five."])


def test_what_is_pressed_is_large_enough_for_a_finger(visit: Visit, site: Site) -> None:
    put(site, ready(1, name="leave.md"))
    page = visit.page
    page.set_viewport_size({"width": 360, "height": 740})
    page.reload()
    ask(page)
    expect(page.get_by_test_id("document-row")).to_have_count(1)
    assert page.evaluate(TARGETS) == []
    page.get_by_test_id("answer").get_by_test_id("citation").first.click()
    expect(page.get_by_test_id("passage")).to_be_visible()
    assert page.evaluate(TARGETS) == []


def test_a_server_that_is_away_is_said_at_once_and_in_words(visit: Visit) -> None:
    page = visit.page
    expect(page.locator("#system")).to_be_hidden()
    page.context.set_offline(True)
    expect(page.locator("#system")).to_contain_text("The server does not answer", ignore_case=True)
    page.get_by_test_id("question-input").fill("How long?")
    page.get_by_test_id("ask-button").click()
    expect(page.locator("#answer-problem")).to_have_text("The server does not answer.")
    page.context.set_offline(False)
    expect(page.locator("#system")).to_be_hidden()
    visit.complaints[:] = [each for each in visit.complaints if "ERR_INTERNET_DISCONNECTED" not in each]


def test_a_request_that_fails_has_the_server_looked_at(visit: Visit) -> None:
    page = visit.page
    expect(page.locator("#system")).to_be_hidden()
    for path in ("**/v1/**", "**/readyz"):
        page.route(path, lambda route: route.abort("connectionrefused"))
    page.get_by_test_id("question-input").fill("How long?")
    page.get_by_test_id("ask-button").click()
    expect(page.locator("#system")).to_have_text("The server does not answer")
    visit.complaints[:] = [each for each in visit.complaints if "ERR_CONNECTION_REFUSED" not in each]


def test_a_download_from_a_server_that_is_away_is_forgotten_once_it_is_back(visit: Visit, site: Site) -> None:
    put(site, ready(1, name="leave.md"))
    page = visit.page
    page.reload()
    download = page.get_by_test_id("document-row").get_by_role("link", name="Download")
    expect(download).to_be_visible()
    page.context.set_offline(True)
    download.click()
    expect(page.locator("#download-refused")).to_contain_text("The download was interrupted")
    expect(page.locator(".top").get_by_text("server does not answer")).to_have_count(1)
    page.context.set_offline(False)
    expect(page.locator("#system")).to_be_hidden()
    expect(page.locator("#download-refused")).to_be_hidden()
    visit.complaints[:] = [each for each in visit.complaints if "ERR_INTERNET_DISCONNECTED" not in each]


def test_no_link_leads_to_a_page_of_json(visit: Visit, site: Site) -> None:
    put(site, ready(1, name="leave.md"))
    page = visit.page
    page.reload()
    page.get_by_test_id("state-button").click()
    state = page.get_by_test_id("state")
    expect(state).to_contain_text("Everything serves.")
    expect(state.get_by_text("retriever")).to_be_visible()
    page.keyboard.press("Escape")
    for link in page.locator("a[href^='/']:visible").all():
        assert link.get_attribute("download") is not None, link.get_attribute("href")
    site.world.ingest.documents.clear()
    page.get_by_test_id("document-row").get_by_role("link", name="Download").click()
    expect(page.locator("#download-refused")).to_contain_text("there is no document")
    assert page.url == f"{site.base_url}/"
    visit.complaints[:] = [each for each in visit.complaints if "status of 404" not in each]


def test_samples_are_offered_where_there_is_nothing_and_a_refusal_is_told(visit: Visit, site: Site) -> None:
    page = visit.page
    button = page.get_by_test_id("load-samples")
    expect(button).to_be_visible()

    def refuse(route: Route) -> None:
        problem = {"reason": "SCOPE_MISSING", "detail": "your key may not make collections"}
        if route.request.method == "POST":
            route.fulfill(status=403, content_type="application/problem+json", json=problem)
        else:
            route.fallback()

    page.route("**/v1/collections", refuse)
    button.click()
    expect(page.locator("#samples-failure")).to_have_text("your key may not make collections")
    expect(button).to_be_enabled()
    put(site, ready(1, name="leave.md"))
    page.reload()
    expect(page.get_by_test_id("document-row")).to_have_count(1)
    expect(button).to_be_hidden()
    visit.complaints[:] = [each for each in visit.complaints if "status of 403" not in each]
