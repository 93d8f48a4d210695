"""The process of a browser: reads a task as a line of JSON, does its steps in Chromium, and writes lines of JSON:

    {"ask": url}       a page wants to be opened; the answer is a line {"allow": true}, or false with `why`
    {"submitted": …}   something is about to leave that may change something
    {"report": …}      what came of the task; the last line

It has no network but the way out to the proxy of the service, and no settings or secrets of the service."""

import asyncio
import base64
import contextlib
import json
import sys
from typing import Any

from playwright.async_api import Browser, Error, Playwright, async_playwright

from services.tools.adapters.browser.enclosure import WayOut, enclose
from services.tools.adapters.browser.page_steps import BrowserSteps, StepFailed

LINE_BYTES_MAX = 64 * 1024 * 1024
_ARGUMENTS = (
    "--disable-quic",
    "--dns-prefetch-disable",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-pings",
    "--no-first-run",
    "--disable-dev-shm-usage",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--proxy-bypass-list=<-loopback>",
    "--js-flags=--max-old-space-size=512",
)


class Wire:
    """The lines to and from the service."""

    def __init__(self, lines: asyncio.StreamReader) -> None:
        self._lines = lines
        self._one = asyncio.Lock()

    async def ask(self, url: str) -> str:
        """Why a page must not be opened; empty when it may."""
        async with self._one:
            write({"ask": url})
            answer: dict[str, Any] = json.loads(await self._lines.readline())
        return "" if answer["allow"] else str(answer["why"])

    def tell_submitted(self) -> None:
        write({"submitted": True})


def write(message: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(message)}\n")
    sys.stdout.flush()


async def _launch(playwright: Playwright, program: str, folder: str, port: int, *, may_sandbox: bool) -> Browser:
    """With Chromium's own sandbox, or without where the machine does not let it: root, and most containers."""
    for is_sandboxed in (True, False) if may_sandbox else (False,):
        with contextlib.nullcontext() if not is_sandboxed else contextlib.suppress(Error):
            browser = await playwright.chromium.launch(
                executable_path=program,
                headless=True,
                chromium_sandbox=is_sandboxed,
                args=list(_ARGUMENTS),
                proxy={"server": f"http://127.0.0.1:{port}"},
                downloads_path=folder,
            )
            write({"sandboxed": is_sandboxed})
            return browser
    raise StepFailed("Chromium did not start")


async def _run(is_enclosed: bool) -> None:
    lines = asyncio.StreamReader(limit=LINE_BYTES_MAX)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    task: dict[str, Any] = json.loads(await lines.readline())
    write({"enclosed": is_enclosed})
    way_out = WayOut(task["socket"])
    async with await way_out.open(), async_playwright() as playwright:
        browser = await _launch(
            playwright, task["program"], task["folder"], way_out.port, may_sandbox=not task["is_root"]
        )
        steps = BrowserSteps(browser, way_out, Wire(lines), task["user_agent"], may_submit=task["may_submit"])
        try:
            report = await steps.run(task["steps"])
        finally:
            await browser.close()
        write({"report": _encoded(report)})


def _encoded(report: dict[str, Any]) -> dict[str, Any]:
    for each in report["seen"]:
        if "data" in each:
            each["data"] = base64.b64encode(each["data"]).decode()
    return report


def main() -> None:
    asyncio.run(_run(enclose()))


if __name__ == "__main__":
    main()
