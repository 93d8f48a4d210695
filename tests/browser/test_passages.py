"""The page of a passage, which citations in other programs lead to."""

import pytest
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
