"""The page of a passage, which citations in other programs lead to."""

import pytest
from groundwork.retriever.v1 import retriever_pb2
from playwright.sync_api import Browser, expect

from tests.browser.site import Site, put, ready
from tests.browsing import refusals_are_expected, visiting

pytestmark = [pytest.mark.browser]


def test_a_citation_of_another_program_leads_to_its_words_in_their_document(browser: Browser, site: Site) -> None:
    put(site, ready(1, name="handbook.md", media_type="text/markdown"))
    with visiting(browser, site.base_url) as visit:
        page = visit.page
        page.goto("/passages/c1?from=0&to=4")
        expect(page.locator("h1")).to_have_text("handbook.pdf")
        expect(page.get_by_test_id("passage-text").locator("mark")).to_have_text("Four")
        expect(page.get_by_test_id("passage-download")).to_be_visible()
        page.goto("/passages/gone")
        expect(page.get_by_test_id("passage-page")).to_contain_text("This passage is gone.")
        refusals_are_expected(visit, status=404)


def test_two_settings_of_a_search_are_compared_hit_by_hit(browser: Browser, site: Site) -> None:
    put(site, ready(1, name="handbook.md", media_type="text/markdown"))
    with visiting(browser, site.base_url) as visit:
        page = visit.page
        page.goto("/search")
        page.get_by_test_id("search-query").fill("notice")
        page.get_by_test_id("compare").click()
        page.get_by_label("Engines").last.select_option("lexical")
        page.get_by_test_id("search-button").click()
        results = page.get_by_test_id("search-result")
        expect(results).to_have_count(2)
        expect(results.first.get_by_test_id("hit")).to_contain_text("Meaning")
        expect(results.last.get_by_test_id("hit")).to_contain_text("=")
        first, second = site.world.retriever.requests[-2:]
        assert {first.strategy, second.strategy} > {retriever_pb2.STRATEGY_LEXICAL}
        assert first.explain
        assert second.explain
