"""What is done with an answer in a real browser: citations by key, copies, questions again, links, and what is folded."""

from collections.abc import Iterator

import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as run_pb
from playwright.sync_api import Browser, Page, Response, expect

from tests.browser.site import Site, ask, put, ready, serving
from tests.browsing import Visit, refusals_are_expected, visiting
from tests.service.gateway.fakes import RUN_ID, answered_run, event

pytestmark = [pytest.mark.browser]

THREAD = "0123456789ab"


@pytest.fixture(scope="module")
def served(browser: Browser) -> Iterator[tuple[Site, Visit]]:
    with serving() as site, visiting(browser, site.base_url) as visit:
        put(site, ready(1, name="handbook.md", media_type="text/markdown"))
        visit.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        yield site, visit


@pytest.fixture
def site(served: tuple[Site, Visit]) -> Site:
    """The one site of this module, which has been asked nothing and answers as at first."""
    site, _ = served
    site.world.orchestrator.log = answered_run()
    site.world.orchestrator.requests.clear()
    return site


@pytest.fixture
def visit(served: tuple[Site, Visit], site: Site) -> Visit:
    """The one page of this module, as at a first visit."""
    _, visit = served
    visit.page.set_viewport_size({"width": 1400, "height": 900})
    visit.page.evaluate("localStorage.clear(); sessionStorage.clear();")
    visit.page.goto("/")
    return visit


def pasted(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


def _is_asked(response: Response) -> bool:
    return response.request.method == "POST" and response.request.headers["accept"].startswith("text/event-stream")


def two_sources(site: Site) -> run_pb.Answer:
    """The answer of a run that cites a passage and a row of another document."""
    log = answered_run()
    log[0].run.thread_id = THREAD
    answer = log[5].answer
    answer.text = "Four weeks [1], or six [2]."
    log[4].token.text = "[1], or six [2]."
    answer.citations.add(
        number=2, document_name="directors.md", chunk_id="c2", text="Six weeks for directors.", quote_end=9
    )
    site.world.orchestrator.log = log
    return answer


def test_n_and_p_go_from_citation_to_citation(visit: Visit, site: Site) -> None:
    two_sources(site)
    page = visit.page
    refusals_are_expected(visit, status=404)  # of the passages around the second, which the services do not have
    ask(page)
    page.get_by_test_id("answer").get_by_test_id("citation").first.click()
    shown = page.get_by_test_id("passage")
    expect(shown.locator("h2")).to_have_text("handbook.pdf")
    for key, name, words in (
        ("n", "directors.md", "Six weeks"),
        ("n", "handbook.pdf", "Four weeks."),
        ("p", "directors.md", "Six weeks"),
    ):
        page.keyboard.press(key)
        expect(shown.locator("h2")).to_have_text(name)
        expect(shown.locator("mark")).to_have_text(words)
    page.get_by_test_id("question-input").fill("")
    page.get_by_test_id("question-input").press("n")
    expect(page.get_by_test_id("question-input")).to_have_value("n")
    expect(shown.locator("h2")).to_have_text("directors.md")


def test_an_answer_is_copied_with_its_citations(visit: Visit, site: Site) -> None:
    two_sources(site)
    page = visit.page
    ask(page)
    whole = "Four weeks [1], or six [2].\n\n[1] handbook.pdf: “Four weeks.”\n[2] directors.md: “Six weeks”"
    page.get_by_test_id("copy").click()
    expect(page.get_by_test_id("copy")).to_have_attribute("aria-label", "Copied")
    assert pasted(page) == whole
    page.evaluate("navigator.clipboard.writeText('')")
    page.locator("h1").click()
    page.keyboard.press("y")
    page.wait_for_function("navigator.clipboard.readText().then((text) => text !== '')")
    assert pasted(page) == whole


def test_a_question_is_edited_or_asked_again_with_another_effort(visit: Visit, site: Site) -> None:
    two_sources(site)
    page, sent = visit.page, site.world.orchestrator.requests
    ask(page)
    page.get_by_role("button", name="Edit and ask again").click()
    field = page.get_by_test_id("question-input")
    expect(field).to_be_focused()
    expect(field).to_have_value("How long?")
    field.fill("How long for directors?")
    with page.expect_response(_is_asked):
        field.press("Enter")
    expect(page.get_by_test_id("answer")).to_have_attribute("aria-busy", "false")
    page.get_by_test_id("again").click()
    with page.expect_response(_is_asked):
        page.get_by_role("menuitem", name="Research it thoroughly").click()
    expect(page.get_by_test_id("mode-research")).to_be_checked()
    expect(page.get_by_test_id("effort")).to_have_value("high")
    assert [each.question for each in sent] == ["How long?", "How long for directors?", "How long?"]
    assert [(each.mode, each.research.effort) for each in sent[1:]] == [
        (run_pb.RUN_MODE_GROUNDED, ""),
        (run_pb.RUN_MODE_AGENT, "high"),
    ]
    assert {each.thread_id for each in sent} == {THREAD}


def test_a_link_leads_to_one_answer(visit: Visit, site: Site) -> None:
    two_sources(site)
    page = visit.page
    ask(page)
    page.get_by_test_id("answer-more").click()
    page.get_by_role("menuitem", name="Copy the link to this answer").click()
    link = pasted(page)
    assert link.endswith(f"/conversations/{THREAD}?answer={RUN_ID}")
    page.goto(link)
    linked = page.locator("article.is-linked")
    expect(linked).to_have_attribute("id", f"answer-{RUN_ID}")
    expect(linked).to_be_in_viewport()
    expect(linked.get_by_test_id("answer")).to_contain_text("Four weeks")
    page.goto(f"/conversations/{THREAD}?answer=another")
    expect(page.get_by_test_id("turn")).to_be_visible()
    expect(linked).to_have_count(0)


def test_values_that_disagree_are_cards_that_open_their_passage(visit: Visit, site: Site) -> None:
    answer = two_sources(site)
    conflict = answer.conflicts.add(what="The notice is … weeks.", found_by="wording")
    conflict.sides.add(value="Six", citation=2, start=0, end=3, date="2024", document_name="directors.md")
    conflict.sides.add(value="Four", citation=1, start=0, end=4, document_name="handbook.pdf")
    page = visit.page
    ask(page)
    cards = page.get_by_test_id("conflict").locator(".card")
    expect(cards).to_have_text(["Sixdirectors.md2024", "Fourhandbook.pdfno date"])
    for width in (360, 768, 1400):
        page.set_viewport_size({"width": width, "height": 900})
        cards.last.scroll_into_view_if_needed()
        expect(cards.last).to_be_in_viewport(ratio=1)
    cards.last.click()
    expect(page.get_by_test_id("passage").locator("mark")).to_have_text("Four")


def test_steps_and_claims_are_folded_until_they_are_opened(visit: Visit, site: Site) -> None:
    answer = two_sources(site)
    answer.method = "model"
    answer.verification.sentences.add(sentence="Four weeks", verdict="supported")
    site.world.orchestrator.log.insert(6, event(0, verification=answer.verification))
    for seq, each in enumerate(site.world.orchestrator.log, 1):
        each.seq = seq
    page = visit.page
    ask(page)
    for folded, inside in (("trace", "step"), ("claims", "claim")):
        part = page.get_by_test_id(folded)
        expect(part.get_by_test_id(inside).first).to_be_hidden()
        part.locator("summary").focus()
        page.keyboard.press("Enter")
        expect(part.get_by_test_id(inside).first).to_be_visible()
        page.keyboard.press("Enter")
        expect(part.get_by_test_id(inside).first).to_be_hidden()


def test_rows_of_a_table_are_cards_on_a_phone(visit: Visit) -> None:
    page = visit.page
    page.goto("/operating")
    page.get_by_test_id("operating-usage").check(force=True)
    cell = page.locator("table.stacked tbody td").first
    expect(cell).to_have_css("display", "table-cell")
    head = page.locator("table.stacked thead th").first.inner_text()
    page.set_viewport_size({"width": 360, "height": 740})
    expect(cell).not_to_have_css("display", "table-cell")
    expect(cell).to_have_attribute("data-label", head)
    expect(cell).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
