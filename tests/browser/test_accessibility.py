"""No page breaks a rule of WCAG 2.2 AA that axe can check, in any language and theme."""

from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.site import Site, ask, put, ready
from tests.browsing import visiting

pytestmark = [pytest.mark.browser]

AXE = Path(__file__).parents[2] / "console" / "checks" / "node_modules" / "axe-core" / "axe.min.js"
OPERATING = ("health", "runs", "jobs", "models", "keys", "usage", "limits", "audit")
SCHEMES: tuple[Literal["dark", "light"], ...] = ("dark", "light")
PAGES = (
    "/",
    "/conversations/0123456789ab",
    "/passages/c1",
    "/documents",
    "/sources",
    "/connections",
    "/decisions",
    "/memory",
    "/search",
    "/operating",
)
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.mark.skipif(not AXE.exists(), reason="skipped: make check-console installs axe-core")
def test_no_page_breaks_a_rule_of_accessibility_in_any_language_and_theme(browser: Browser, site: Site) -> None:
    put(site, ready(1, name="leave.md", media_type="text/markdown"))
    site.world.ingest.files["d0000001"] = b"Four weeks."
    with visiting(browser, site.base_url, lambda page: page.add_init_script(path=AXE)) as visit:
        page = visit.page
        visit.expected.add("status of 412")  # of the keys and the audit log of a gateway without keys
        page.set_viewport_size({"width": 1400, "height": 900})
        broken = {each for path in PAGES for each in _broken_at(page, path)}
        for part in OPERATING:
            page.get_by_test_id(f"operating-{part}").check(force=True)
            expect(page.locator(".loading")).to_have_count(0)
            broken |= _broken(page, part)
        page.goto("/")
        ask(page)
        page.get_by_test_id("answer").get_by_test_id("citation").first.click()
        expect(page.get_by_test_id("passage-text")).to_be_visible()
        broken |= _broken(page, "a passage beside its answer")
        page.goto("/documents")
        page.get_by_test_id("document-row").get_by_role("button").click()
        page.get_by_test_id("access").locator("summary").click()
        expect(page.get_by_test_id("restrict")).to_be_visible()
        broken |= _broken_now(page, "a document")
    assert not broken


def _broken_at(page: Page, path: str) -> set[str]:
    page.goto(path)
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)
    return _broken(page, path)


def _broken(page: Page, place: str) -> set[str]:
    """What breaks a rule here, in each language and theme. The page ends in English."""
    found: set[str] = set()
    for language in ("de", "ru", "he", "en"):
        page.get_by_test_id("language").select_option(language)
        expect(page.locator("html")).to_have_attribute("lang", language)
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            expect(page.locator("html")).to_have_attribute("data-theme", scheme)
            found |= _broken_now(page, f"{place}, {language}, {scheme}")
    return found


def _broken_now(page: Page, place: str) -> set[str]:
    found: list[str] = page.evaluate(
        """async (tags) => (await axe.run(document, { runOnly: { type: "tag", values: tags } }))
          .violations.map(({ id, nodes }) => `${id}: ${nodes.map((each) => each.html.slice(0, 160)).join(" | ")}`)""",
        RULES,
    )
    return {f"{place}: {each}" for each in found}
