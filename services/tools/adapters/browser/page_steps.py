"""Does steps in Chromium, in a profile of their own. While only reading, what would change something is not let out, and once a
field was filled in nothing is, until another page is opened in a fresh profile: what was typed cannot leave."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from playwright.async_api import (
    Browser,
    BrowserContext,
    Download,
    Error,
    Locator,
    Page,
    Route,
    ViewportSize,
    WebSocketRoute,
)
from playwright.async_api import TimeoutError as PlaywrightTimeout

from services.tools.browser.steps import WAIT_S_MAX

_READING = ("GET", "HEAD", "OPTIONS")
_OPEN_MS, _STEP_MS, _QUIET_MS = 20_000, 5_000, 2_500
_DOWNLOAD_S = 20.0
_HTML_CHARACTERS_MAX = 3_000_000
_FILE_BYTES_MAX = 12 * 1024 * 1024
_FILES_MAX = 3
_ELEMENTS_MAX = 80
_BLOCKED_MAX = 20
_PICTURE = ViewportSize(width=1280, height=1600)
_LIST_ELEMENTS = """limit => {
  const found = [];
  for (const each of document.querySelectorAll("a[href], button, input, select, textarea, [role=button], [role=link]")) {
    if (found.length >= limit) break;
    if (each.type === "hidden" || !each.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    const field = each.matches("input:not([type=submit]):not([type=button]), select, textarea");
    const label = field && each.labels && each.labels[0] ? each.labels[0].innerText : "";
    const name = (each.getAttribute("aria-label") || label || (field ? "" : each.innerText || each.value)
      || each.placeholder || each.name || "").replace(/\\s+/g, " ").trim().slice(0, 120);
    if (name) found.push({kind: field ? "field" : each.matches("a, [role=link]") ? "link" : "button", name});
  }
  return found;
}"""


class StepFailed(Exception):
    """A step could not be done; the message says why."""


class Asks(Protocol):
    """What the steps ask the service, and report to it, meanwhile."""

    async def ask(self, url: str) -> str: ...

    def tell_submitted(self) -> None: ...


class Exit(Protocol):
    """The way to the network."""

    async def cut(self) -> None: ...

    def restore(self) -> None: ...


class BrowserSteps:
    """The steps of one task."""

    def __init__(self, browser: Browser, way_out: Exit, asks: Asks, user_agent: str, *, may_submit: bool) -> None:
        self._browser, self._way_out, self._asks = browser, way_out, asks
        self._user_agent = f"{_plain_agent(browser.version)} {user_agent}"
        self._may_submit = may_submit
        self._context: BrowserContext | None = None
        self._page: Page | None = None
        self._filled: Locator | None = None
        self._seen: list[dict[str, Any]] = []
        self._blocked: list[str] = []
        self._downloads: list[Download] = []
        self._has_submitted = False
        self._has_acted = False
        """Whether a step did more than open and read."""
        self._is_judged = False
        """Whether the next page to be opened was judged already."""

    async def run(self, steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The report, also when one of the steps cannot be done."""
        done, stopped = 0, ""
        try:
            for step in steps:
                await getattr(self, f"_{step['do']}")(step)
                done += 1
            if not any(step["do"] in ("read", "screenshot") for step in steps):
                await self._read({})
        except StepFailed as error:
            stopped = str(error)
        except PlaywrightTimeout:
            stopped = "the page did not answer in time, or has no such element"
        except Error as error:
            stopped = error.message.partition("\n")[0][:300]
        if stopped and self._page is not None:
            with contextlib.suppress(Error, StepFailed):
                await self._read({})
        await self._take_downloads()
        return {
            "done": done,
            "stopped": stopped,
            "seen": self._seen,
            "blocked": self._blocked,
            "has_submitted": self._has_submitted,
        }

    async def _open(self, step: Mapping[str, Any]) -> None:
        if self._context is None or self._filled is not None:
            await self._begin()
        page = self._opened()
        if why := await self._asks.ask(step["url"]):
            raise StepFailed(why)
        self._is_judged = True
        try:
            await page.goto(step["url"], wait_until="domcontentloaded", timeout=_OPEN_MS)
        except PlaywrightTimeout:
            raise
        except Error as error:
            await asyncio.sleep(0)
            if not self._downloads and "Download is starting" not in error.message:
                raise StepFailed(self._why(error)) from error
        await self._settle()

    async def _click(self, step: Mapping[str, Any]) -> None:
        self._has_acted = True
        if self._filled is not None:
            self._note_submission()
        await (await self._found(step["target"], "link", "button")).click(timeout=_STEP_MS)
        await self._settle()

    async def _fill(self, step: Mapping[str, Any]) -> None:
        field = await self._found(step["target"], "textbox", "combobox", "searchbox", "spinbutton", "checkbox", "radio")
        if not self._may_submit:
            await self._way_out.cut()
        self._filled, self._has_acted = field, True
        kind = await field.evaluate("each => each.tagName === 'SELECT' ? 'select' : each.type || ''")
        if kind == "select":
            await field.select_option(label=step["text"], timeout=_STEP_MS)
        elif kind in ("checkbox", "radio"):
            await field.check(timeout=_STEP_MS)
        else:
            await field.fill(step["text"], timeout=_STEP_MS)

    async def _submit(self, step: Mapping[str, Any]) -> None:
        self._note_submission()
        if step.get("target"):
            await (await self._found(step["target"], "button", "link")).click(timeout=_STEP_MS)
        elif self._filled is not None:
            await self._filled.press("Enter", timeout=_STEP_MS)
        else:
            raise StepFailed("nothing was filled in: name the button that submits the form as `target`")
        await self._settle()

    async def _wait(self, step: Mapping[str, Any]) -> None:
        if step.get("text"):
            await self._opened().get_by_text(step["text"]).first.wait_for(timeout=WAIT_S_MAX * 1_000)
        else:
            await asyncio.sleep(min(float(step.get("seconds", 2)), WAIT_S_MAX))

    async def _read(self, _: Mapping[str, Any]) -> None:
        page = self._opened()
        if not page.url.startswith(("http://", "https://")):
            return  # a page that was not let in
        html = await page.content()
        self._seen.append(
            {
                "url": page.url,
                "title": await page.title(),
                "html": html[:_HTML_CHARACTERS_MAX],
                "is_truncated": len(html) > _HTML_CHARACTERS_MAX,
                "elements": await page.evaluate(_LIST_ELEMENTS, _ELEMENTS_MAX),
            }
        )

    async def _screenshot(self, _: Mapping[str, Any]) -> None:
        page = self._opened()
        data = await page.screenshot(type="png", timeout=_STEP_MS, animations="disabled")
        self._seen.append({"url": page.url, "name": "screenshot.png", "data": data, "is_screenshot": True})

    async def _begin(self) -> None:
        """A fresh profile; what the one before knew goes with it."""
        if self._context is not None:
            await self._context.close()
        self._filled = None
        self._way_out.restore()
        self._context = await self._browser.new_context(
            user_agent=self._user_agent, service_workers="block", viewport=_PICTURE, accept_downloads=True
        )
        self._context.set_default_timeout(_STEP_MS)
        await self._context.route("**/*", self._judge)
        if not self._may_submit:
            await self._context.route_web_socket("**/*", self._refuse_socket)
        self._context.on("page", self._follow)
        self._page = await self._context.new_page()

    def _follow(self, page: Page) -> None:
        """A link may open another page: the steps go on there."""
        self._page = page
        page.on("download", lambda download: self._downloads.append(download))  # noqa: PLW0108 - Playwright marks it

    async def _judge(self, route: Route) -> None:
        request = route.request
        why = ""
        if request.method not in _READING and not self._may_submit:
            why = "it would submit something, which takes browser_submit and a person who allows it"
        elif self._filled is not None and not self._may_submit:
            why = "what was filled in stays on the page; browser_submit submits, after a person has allowed it"
        elif request.is_navigation_request() and request.frame.parent_frame is None:
            why = "" if self._is_judged else await self._asks.ask(request.url)
            self._is_judged = False
        if why:
            self._block(request.url, why)
            await route.abort("blockedbyclient")
            return
        if request.method not in _READING and self._has_acted:
            self._note_submission()
        await route.continue_()

    def _refuse_socket(self, socket: WebSocketRoute) -> None:
        self._block(socket.url, "a web socket could submit something, which takes browser_submit")
        asyncio.ensure_future(socket.close())  # noqa: RUF006 - Playwright keeps it

    def _block(self, url: str, why: str) -> None:
        said = f"{url[:200]}: {why}"
        if len(self._blocked) < _BLOCKED_MAX and said not in self._blocked:
            self._blocked.append(said)

    def _note_submission(self) -> None:
        if self._may_submit and not self._has_submitted:
            self._has_submitted = True
            self._asks.tell_submitted()

    def _why(self, error: Error) -> str:
        return self._blocked[-1] if self._blocked else error.message.partition("\n")[0][:300]

    def _opened(self) -> Page:
        if self._page is None:
            raise StepFailed("no page is open: begin with a step `open`")
        return self._page

    async def _found(self, target: str, *roles: str) -> Locator:
        """The first visible element that is called so. Raises StepFailed."""
        page = self._opened()
        by_role = [page.get_by_role(role, name=target, exact=exact) for exact in (True, False) for role in roles]  # type: ignore[arg-type] # the words above are roles
        others = [page.get_by_label(target), page.get_by_placeholder(target), page.get_by_text(target)]
        named = [page.locator(f"[name={_quoted(target)}]")]
        async with asyncio.timeout(_STEP_MS / 1_000):
            for locator in (*by_role, *others, *named):
                for each in await locator.all():
                    if await each.is_visible():
                        return each
        raise StepFailed(f"the page has nothing visible that is called {target[:80]!r}; `elements` lists what there is")

    async def _settle(self) -> None:
        """Lets a page draw itself. One that never rests is taken as it is."""
        page = self._opened()
        with contextlib.suppress(Error):
            await page.wait_for_load_state("domcontentloaded", timeout=_STEP_MS)
            await page.wait_for_load_state("networkidle", timeout=_QUIET_MS)

    async def _take_downloads(self) -> None:
        for download in self._downloads[:_FILES_MAX]:
            with contextlib.suppress(Error, TimeoutError, OSError):
                async with asyncio.timeout(_DOWNLOAD_S):
                    path = await download.path()
                data = await asyncio.to_thread(_beginning, path)
                if len(data) > _FILE_BYTES_MAX:
                    self._block(download.url, f"a file is read up to {_FILE_BYTES_MAX // 1024**2} MiB")
                    continue
                self._seen.append({"url": download.url, "name": download.suggested_filename, "data": data})


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_FILE_BYTES_MAX + 1)


def _plain_agent(version: str) -> str:
    major = version.partition(".")[0]
    return f"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{major}.0.0.0 Safari/537.36"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
