"""A real browser for tests of the console, and a visit that notes what a page should not do."""

import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from PIL import Image
from playwright.sync_api import Browser, ConsoleMessage, FilePayload, Page, Request, expect, sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
WAIT_MS = 300_000
expect.set_options(timeout=60_000)  # of what comes at once on a machine that is not busy with other work
VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@contextmanager
def launched(*flags: str) -> Iterator[Browser]:
    """A browser with these flags besides FLAGS."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        pytest.skip("no browser: install chromium, on Debian and Ubuntu with: sudo apt install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=[*FLAGS, *flags])
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
    expected: set[str] = field(default_factory=set)
    """Words of complaints that the test brings about."""

    def __post_init__(self) -> None:
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        self.page.on("request", self._on_request)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not any(each in message.text for each in self.expected):
            self.complaints.append(f"console: {message.text} ({message.location['url']})")

    def _on_request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme in {"http", "https", "ws", "wss"} and parts.netloc != self.host:
            self.complaints.append(f"asked another host: {request.url}")


@contextmanager
def visiting(browser: Browser, base_url: str, prepare: Callable[[Page], object] = lambda _: None) -> Iterator[Visit]:
    """The page at `/`, in a profile of its own. `prepare` is called before it is opened. Fails at the end when it did what it
    should not."""
    context = browser.new_context(base_url=base_url)
    context.add_init_script(VIOLATIONS)
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    visit = Visit(page, urlsplit(base_url).netloc)
    try:
        prepare(page)
        page.goto("/")
        yield visit
        assert page.evaluate("window.violations") == [], page.evaluate("window.violations")
        assert visit.complaints == [], visit.complaints
    finally:
        context.close()


def upload_files(page: Page, *files: FilePayload) -> None:
    """Gives files to the page of documents, which takes them once it knows their collection."""
    field = page.get_by_test_id("file-input")
    expect(field).to_be_enabled(timeout=WAIT_MS)
    field.set_input_files(list(files))


def picture(page: Page, name: str) -> None:
    """Keeps how the page looks now in the folder that CONSOLE_PICTURES names, in few colours so that it is small."""
    folder = os.environ.get("CONSOLE_PICTURES")
    if folder:
        shot = Image.open(io.BytesIO(page.screenshot(animations="disabled")))
        shot.convert("RGB").quantize(64).save(Path(folder, f"{name}.png"), optimize=True)


def refusals_are_expected(visit: Visit, status: int = 401) -> None:
    """A browser notes each of them in its console: those until now, and those to come."""
    visit.expected.add(f"status of {status}")
    visit.complaints[:] = [each for each in visit.complaints if f"status of {status}" not in each]


def plain_http_is_expected(visit: Visit) -> None:
    """A browser notes that a page from another machine, without TLS, cannot be kept apart from other windows."""
    visit.complaints[:] = [each for each in visit.complaints if "Cross-Origin-Opener-Policy" not in each]
