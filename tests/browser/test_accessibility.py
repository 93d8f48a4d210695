"""No page breaks a rule of WCAG 2.2 AA that axe can check, in any language and theme."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.site import Site, ask, put, ready
from tests.browsing import visiting

pytestmark = [pytest.mark.browser]

AXE = Path(__file__).parents[2] / "console" / "checks" / "node_modules" / "axe-core" / "axe.min.js"
PAGES = ("/", "/conversations/0123456789ab", "/documents", "/sources", "/decisions", "/memory", "/search", "/operating")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.mark.skipif(not AXE.exists(), reason="skipped: make check-console installs axe-core")
@pytest.mark.parametrize(
    ("language", "scheme"), [("en", "light"), ("en", "dark"), ("de", "light"), ("ru", "dark"), ("he", "light")]
)
def test_no_page_breaks_a_rule_of_accessibility(browser: Browser, site: Site, language: str, scheme: Any) -> None:
    put(site, ready(1, name="leave.md", media_type="text/markdown"))
    with visiting(browser, site.base_url, lambda page: page.add_init_script(path=AXE)) as visit:
        page = visit.page
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.get_by_test_id("language").select_option(language)
        broken = {path: _broken(page, path) for path in PAGES}
        page.goto("/")
        ask(page)
        page.get_by_test_id("answer").get_by_test_id("citation").first.click()
        expect(page.get_by_test_id("passage-text")).to_be_visible()
        broken["a passage beside its answer"] = _found(page)
    assert not {path: found for path, found in broken.items() if found}


def _broken(page: Page, path: str) -> list[str]:
    page.goto(path)
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)
    return _found(page)


def _found(page: Page) -> list[str]:
    found: list[str] = page.evaluate(
        """async (tags) => (await axe.run(document, { runOnly: { type: "tag", values: tags } }))
          .violations.map(({ id, nodes }) => `${id}: ${nodes.map((each) => each.html.slice(0, 160)).join(" | ")}`)""",
        RULES,
    )
    return found
