"""What the tools of the browser have in common: their steps, and the passages of what was seen."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from services.tools.adapters.browser.running import problem
from services.tools.adapters.http.web_passages import about, page_passages
from services.tools.browser.steps import (
    STEPS_MAX,
    TARGET_CHARACTERS_MAX,
    TEXT_CHARACTERS_MAX,
    WAIT_S_MAX,
    BrowserFailed,
    BrowserReport,
    BrowserTask,
    SeenFile,
    SeenPage,
)
from services.tools.context import ToolContext
from services.tools.errors import InvalidArguments, ToolError, ToolUnavailable
from services.tools.models import Passage, ToolOutput
from services.tools.passages.choosing import ranked, within
from services.tools.passages.rendering import all_described, counted
from services.tools.settings import ToolsSettings
from services.tools.web.pages import URL_CHARACTERS_MAX, Page, PageText
from services.tools.web.reader import web_of

_NEEDED = {"open": "url", "click": "target", "fill": "target"}


def steps_schema(*more: str) -> dict[str, Any]:
    """The schema of the argument `steps`; `more` are steps beyond those that only read."""
    return {
        "type": "array",
        "minItems": 1,
        "maxItems": STEPS_MAX,
        "description": (
            "Done one after another, for example [{do: open, url: https://…}, {do: click, target: Prices}, {do: read}]. Each call "
            "begins with a new browser."
        ),
        "items": {
            "type": "object",
            "properties": {
                "do": {"type": "string", "enum": ["open", "click", "fill", "wait", "read", "screenshot", *more]},
                "url": {"type": "string", "minLength": 8, "maxLength": URL_CHARACTERS_MAX, "description": "Of open."},
                "target": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": TARGET_CHARACTERS_MAX,
                    "description": "The words on a link or button, or the label of a field.",
                },
                "text": {
                    "type": "string",
                    "maxLength": TEXT_CHARACTERS_MAX,
                    "description": "Of fill: what to write or choose. Of wait: text that must appear.",
                },
                "seconds": {"type": "number", "minimum": 0, "maximum": WAIT_S_MAX, "description": "Of wait."},
            },
            "required": ["do"],
            "additionalProperties": False,
        },
    }


LOOK_FOR = {
    "type": "string",
    "description": "What you want to know: of long pages, the passages that fit best are shown.",
    "maxLength": 500,
}


def is_set_up(settings: ToolsSettings) -> bool:
    """Whether there are web sites to read and a browser to read them with."""
    return not what_is_missing(settings)


def what_is_missing(settings: ToolsSettings) -> str:
    """What an operator does so that the browser can be used; empty when it can."""
    if not settings.tools_web_hosts:
        return "set GROUNDWORK_TOOLS_WEB_HOSTS to the web sites that may be read, or to * for all"
    return problem(settings.tools_browser)


async def browse(
    steps: Sequence[Mapping[str, Any]], look_for: str, context: ToolContext, *, may_submit: bool
) -> ToolOutput:
    """Does the steps, and reads what was seen. Raises ToolError."""
    _check(steps)
    browser, web = context.services.browser, web_of(context.services.web)
    if browser is None:
        raise ToolUnavailable(f"there is no browser here: {what_is_missing(context.settings)}")

    async def permit(url: str) -> None:
        await web.fetcher.check(url, context.run_id)

    report = await browser.run(BrowserTask(steps, may_submit), permit)
    if not report.seen and report.stopped:
        raise BrowserFailed(f"step {report.done + 1} ({steps[report.done]['do']}): {report.stopped}")
    return await _told(steps, report, look_for, context)


def _check(steps: Sequence[Mapping[str, Any]]) -> None:
    for number, step in enumerate(steps, 1):
        needed = _NEEDED.get(step["do"], "do")
        if needed not in step:
            raise InvalidArguments(f"step {number} ({step['do']}) needs `{needed}`")
        if step["do"] == "fill" and "text" not in step:
            raise InvalidArguments(f"step {number} (fill) needs `text`")
    if steps[0]["do"] != "open":
        raise InvalidArguments("the first step opens a page: {do: open, url: https://…}")


async def _told(
    steps: Sequence[Mapping[str, Any]], report: BrowserReport, look_for: str, context: ToolContext
) -> ToolOutput:
    now = context.now()
    pages, passages, unread = [], list[Passage](), list[dict[str, str]]()
    for each in report.seen:
        try:
            page = await _page(each, now, context)
        except ToolError as error:
            unread.append({"what": each.name if isinstance(each, SeenFile) else each.url, "why": str(error)})
            page = Page(each.url, PageText(""), now)
        else:
            passages += page_passages(page)
        pages.append(_described(each, page))
    budget = context.settings.tools_text_tokens
    shown = within(await ranked(passages, look_for, context), budget) if passages else []
    content: dict[str, Any] = {"steps_done": report.done, "pages": pages, "passages": all_described(shown)}
    if report.stopped:
        content["stopped"] = f"step {report.done + 1} ({_name(steps, report.done)}): {report.stopped}"
    if unread:
        content["unread"] = unread
    if report.blocked:
        content["not_let_out"] = list(report.blocked)
    if len(shown) < len(passages):
        content["more"] = f"What was seen has {len(passages)} passages; use look_for to see others."
    last = report.seen[-1].url if report.seen else ""
    return ToolOutput(
        content, f"{report.done} of {len(steps)} steps done, {counted(shown)} read: {last[:120]}.", tuple(shown)
    )


async def _page(each: SeenPage | SeenFile, now: datetime, context: ToolContext) -> Page:
    web = web_of(context.services.web)
    if isinstance(each, SeenFile):
        return Page(each.url, await web.file_text(each.name, each.data), now)
    text = await web.page_text(each.html.encode(errors="replace"), "text/html", "utf-8", each.url)
    return Page(each.url, text, now, each.is_truncated)


def _described(each: SeenPage | SeenFile, page: Page) -> dict[str, Any]:
    if isinstance(each, SeenFile):
        return {**about(page), "screenshot" if each.is_screenshot else "file": each.name}
    known = {**about(page), "title": each.title}
    return {**known, "elements": [dict(element) for element in each.elements]}


def _name(steps: Sequence[Mapping[str, Any]], number: int) -> str:
    return str(steps[number]["do"]) if number < len(steps) else "read"
