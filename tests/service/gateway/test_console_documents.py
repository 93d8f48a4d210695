"""The console's documents, passages and words about the server in a real browser; the services behind the gateway are scripted."""

from collections.abc import Iterator
from typing import Any

import pytest
from groundwork.ingest.v1 import ingest_pb2
from groundwork.retriever.v1 import retriever_pb2
from playwright.sync_api import Browser, Page, Route, expect

from tests.browsing import Visit, browser, visiting
from tests.service.gateway.fakes import answered_run, chunk, document
from tests.service.gateway.test_console import Site, site

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


@pytest.mark.parametrize("width", [860, 960, 1280, 1600])
def test_no_part_of_the_hint_below_a_question_is_cut_off(visit: Visit, site: Site, width: int) -> None:
    put(site, ready(1, collection_id="recipes"))
    page = visit.page
    page.set_viewport_size({"width": width, "height": 800})
    page.reload()
    page.get_by_label("Collection", exact=True).select_option("recipes")
    hint = page.locator("#question-hint")
    room = hint.bounding_box()
    assert room
    for part in hint.locator("span").all():
        box = part.bounding_box()
        assert box
        is_below = box["y"] >= room["y"] + room["height"]
        assert is_below or box["x"] + box["width"] <= room["x"] + room["width"]


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
