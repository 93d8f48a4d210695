"""The console's first page in a browser with an empty cache: first paint, when a question can be typed, what was sent for it."""

import shutil

from playwright.sync_api import Browser, sync_playwright

from bench.report import Figure, Part
from evals.samples import Samples
from evals.system import running_system

VISITS = 7
SENT_TARGET_KIB = 250.0
_WATCH = """
new MutationObserver((_, observer) => {
  if (!document.querySelector("[data-testid=question-input]")) return;
  window.typedAt = performance.now();
  observer.disconnect();
}).observe(document, { childList: true, subtree: true });
"""
_PAINTED = 'performance.getEntriesByName("first-contentful-paint")[0]?.startTime'
_SENT = """[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .filter((each) => each.initiatorType !== "fetch").reduce((sum, each) => sum + each.transferSize, 0)"""


def measure() -> Part:
    """Visits the page several times, and beside each visit a page of one line of the same server."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        return Part("First page of the console", "Not measured: there is no chromium on this machine.", ())
    with running_system() as system, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        visits = [_visit(browser, system.url) for _ in range(VISITS)]
        browser.close()
    plain, painted, typed = (Samples.of([visit[at] for visit in visits]) for at in range(3))
    sent_kib = max(visit[3] for visit in visits) / 1024
    return Part(
        title="First page of the console",
        about=(
            f"{VISITS} visits of `/` by chromium without a screen, each with an empty cache, on the machine of the server. The "
            "reference is one line of text of the same server, visited by the same browser just before. A question can be typed "
            "once the page has put up its field."
        ),
        figures=(
            Figure("first paint of one line of text, ms", plain.spread()),
            Figure("first paint of the console, ms", painted.spread()),
            Figure("until a question can be typed, ms", typed.spread()),
            Figure(
                "sent for the first page, KiB",
                f"{sent_kib:.0f}",
                f"< {SENT_TARGET_KIB:.0f}",
                sent_kib < SENT_TARGET_KIB,
            ),
        ),
    )


def _visit(browser: Browser, url: str) -> tuple[float, float, float, float]:
    """Milliseconds until the line, the page and its field were painted, and the bytes of the page."""
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{url}/livez")
        plain = float(page.wait_for_function(_PAINTED).json_value())
        page.add_init_script(_WATCH)
        page.goto(url)
        typed = float(page.wait_for_function("window.typedAt").json_value())
        painted = float(page.wait_for_function(_PAINTED).json_value())
        return plain, painted, typed, float(page.evaluate(_SENT))
