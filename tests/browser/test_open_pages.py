"""What becomes of a page that is open while the server changes: a new build, a server that is away, a page that is left."""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FilePayload, Route, expect

from kit.errors import Unavailable
from tests.browser.site import Site, ask, put, ready
from tests.browsing import Visit, refusals_are_expected, upload_files, visiting

pytestmark = [pytest.mark.browser]

BUILT = Path(__file__).resolve().parents[2] / "services" / "gateway" / "console_dist"
FIRST_PAGE_BYTES_MAX = 250_000


@pytest.fixture
def visit(browser: Browser, site: Site) -> Iterator[Visit]:
    put(site, ready(1, name="handbook.md", media_type="text/markdown"))
    with visiting(browser, site.base_url) as visit:
        yield visit


def gone(visit: Visit, part: str) -> None:
    """A part of this build that the server does not have any more."""
    visit.expected.add("dynamically imported module")
    visit.page.route(f"**/console/assets/{part}-*.js", lambda route: route.fulfill(status=404, body="{}"))


def renewed(visit: Visit) -> None:
    """From now on the server has a newer build."""
    page = visit.page

    def newer(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(
            response=answer, body=answer.text().replace('src="/console/assets/index-', 'src="/console/assets/index-n')
        )

    def built(route: Route) -> None:
        route.fulfill(response=route.fetch(url=route.request.url.replace("/index-n", "/index-")))

    page.route("**/console/assets/index-n*.js", built)
    page.route(re.compile(r"^http://[^/]+/(conversations/[^/]+|search)?$"), newer)


def test_a_part_that_a_new_build_does_not_have_any_more_loads_the_page_anew_once(visit: Visit) -> None:
    page = visit.page
    ask(page)
    page.get_by_test_id("question-input").fill("And then?")
    gone(visit, "PassagePanel")

    renewed(visit)
    with page.expect_navigation():
        page.get_by_test_id("answer").get_by_test_id("citation").first.click()
    expect(page.get_by_test_id("renewed")).to_contain_text("was updated")
    expect(page.get_by_test_id("question-input")).to_have_value("And then?")
    page.get_by_test_id("answer").get_by_test_id("citation").first.click()
    expect(page.get_by_test_id("passage")).to_contain_text("could not be loaded")
    page.get_by_test_id("renewed").get_by_role("button").click()
    expect(page.get_by_test_id("renewed")).to_have_count(0)
    refusals_are_expected(visit, status=404)


def test_a_part_that_cannot_be_loaded_says_so_in_its_place(visit: Visit) -> None:
    page = visit.page
    ask(page)
    gone(visit, "PassagePanel")
    page.get_by_test_id("answer").get_by_test_id("citation").first.click()
    passage = page.get_by_test_id("passage")
    expect(passage).to_contain_text("could not be loaded")
    expect(page.get_by_test_id("answer")).to_contain_text("Four weeks")
    page.unroute("**/console/assets/PassagePanel-*.js")
    with page.expect_navigation():
        passage.get_by_role("button", name="Try again").click()
    page.get_by_test_id("answer").get_by_test_id("citation").first.click()
    expect(page.get_by_test_id("passage-text")).to_be_visible()
    refusals_are_expected(visit, status=404)


def test_a_page_with_something_unsaved_is_not_loaded_anew_by_itself(visit: Visit) -> None:
    page = visit.page
    page.get_by_role("link", name="Search").click()
    query = page.get_by_test_id("search-query")
    query.fill("soup")
    gone(visit, "Memory")
    renewed(visit)
    page.get_by_role("link", name="Memory").hover()
    outdated = page.get_by_test_id("outdated")
    expect(outdated).to_contain_text("Save what you have begun")
    expect(query).to_have_value("soup")
    with page.expect_navigation():
        outdated.get_by_role("button", name="Load anew").click()
    expect(page.get_by_test_id("renewed")).to_be_visible()
    expect(outdated).to_have_count(0)
    refusals_are_expected(visit, status=404)


def test_what_is_typed_stays_with_its_page(visit: Visit) -> None:
    page = visit.page
    question = page.get_by_test_id("question-input")
    question.fill("How long is")
    page.get_by_role("link", name="Documents").click()
    expect(page.get_by_test_id("document-row")).to_have_count(1)
    page.get_by_test_id("new-conversation").click()
    expect(question).to_have_value("How long is")
    ask(page, "How long is it?")
    page.get_by_test_id("new-conversation").click()
    expect(question).to_have_value("")


def test_a_file_that_comes_while_the_server_is_away_is_sent_again_by_itself(visit: Visit, site: Site) -> None:
    page = visit.page
    page.goto("/documents")
    site.world.ingest.refuse_after_header = Unavailable("the store does not answer")
    with page.expect_response(lambda response: response.status == 503):
        upload_files(page, FilePayload(name="soup.md", mimeType="text/markdown", buffer=b"Soup is hot."))
    site.world.ingest.refuse_after_header = None
    expect(page.get_by_test_id("uploads")).to_contain_text("1 file taken")
    assert site.world.ingest.committed == 1
    refusals_are_expected(visit, status=503)


def test_the_first_page_with_its_scripts_and_styles_stays_small() -> None:
    """Compressed: what index.html names is loaded before anything is seen."""
    index = BUILT / "index.html"
    named = re.findall(r'(?:src|href)="/console/([^"]+\.(?:js|css))"', index.read_text())
    assert {Path(name).suffix for name in named} == {".js", ".css"}
    sizes = {name: len(gzip.compress((BUILT / name).read_bytes())) for name in ("index.html", *named)}
    assert sum(sizes.values()) < FIRST_PAGE_BYTES_MAX, sorted(sizes.items(), key=lambda each: -each[1])
