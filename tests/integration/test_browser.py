"""The page at `/` in a real browser: upload, ask, read the streamed answer, open a citation."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.integration.conftest import DATA
from tests.integration.system import Groundwork

pytestmark = [pytest.mark.integration, pytest.mark.browser]

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
WAIT_MS = 20_000
VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        pytest.skip("no browser: install chromium, on Debian and Ubuntu with: sudo apt install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visit:
    """A page and everything it did that it should not."""

    page: Page
    host: str
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        self.page.on("request", self._on_request)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(f"console: {message.text}")

    def _on_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in {"http", "https", "ws", "wss"} and parts.netloc != self.host:
            self.complaints.append(f"asked another host: {request.url}")


@pytest.fixture
def visit(browser: Browser, system: Groundwork) -> Iterator[Visit]:
    context = browser.new_context(base_url=system.base_url)
    context.add_init_script(VIOLATIONS)
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    visit = Visit(page, urlsplit(system.base_url).netloc)
    try:
        page.goto("/")
        yield visit
        assert page.evaluate("window.violations") == []
        assert visit.complaints == []
    finally:
        context.close()


def test_upload_ask_and_open_the_citation(visit: Visit) -> None:
    page = visit.page
    page.get_by_test_id("file-input").set_input_files(DATA / "handbook.md")
    row = page.get_by_test_id("document-row").filter(has_text="handbook.md")
    expect(row).to_have_attribute("data-status", "ready", timeout=WAIT_MS)

    page.get_by_test_id("question-input").fill("How long is the notice period during probation?")
    page.get_by_test_id("ask-button").click()
    answer = page.get_by_test_id("answer")
    expect(answer).to_contain_text("two weeks", timeout=WAIT_MS)
    expect(answer).to_have_attribute("aria-busy", "false")
    expect(page.get_by_test_id("support-status")).to_contain_text("carried by its sources")

    answer.get_by_test_id("citation").first.click()
    passage = page.get_by_test_id("passage")
    expect(passage).to_be_visible()
    expect(passage).to_contain_text("handbook.md")
    expect(passage.locator("mark")).to_contain_text("notice period")
    expect(passage).to_contain_text("Company bicycles")
    page.keyboard.press("Escape")
    expect(passage).to_be_hidden()

    row.get_by_role("button", name="Delete").click()
    row.get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)
    page.get_by_test_id("question-input").fill("How long is the notice period during probation?")
    page.keyboard.press("Enter")
    expect(answer).to_contain_text("The documents do not say.")
    expect(answer.get_by_test_id("citation")).to_have_count(0)


def test_a_file_that_cannot_be_read_and_markup_in_a_name_are_shown_as_text(visit: Visit) -> None:
    page = visit.page
    name = "<img src=x onerror=alert(1)>.pdf"
    page.get_by_test_id("file-input").set_input_files(
        {"name": name, "mimeType": "application/pdf", "buffer": (DATA / "encrypted.pdf").read_bytes()}
    )
    row = page.get_by_test_id("document-row").filter(has_text=name)
    expect(row).to_have_attribute("data-status", "failed", timeout=WAIT_MS)
    expect(row).to_contain_text("protected by a password")
    row.get_by_role("button", name="Delete").click()
    row.get_by_role("button", name="Delete").click()
    expect(row).to_have_count(0)


def test_the_page_fits_a_phone(visit: Visit) -> None:
    visit.page.set_viewport_size({"width": 360, "height": 740})
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 360
    expect(visit.page.get_by_test_id("question-input")).to_be_in_viewport()
