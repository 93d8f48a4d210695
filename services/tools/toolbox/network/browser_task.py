"""Reads pages in a real browser, for those that scripts draw. It changes nothing outside: only documents are asked for, and what is
filled in stays on the page."""

from collections.abc import Mapping, Sequence
from typing import Any

from services.tools.browser.steps import TIMEOUT_S
from services.tools.context import ToolContext
from services.tools.models import Policy, ToolOutput
from services.tools.toolbox.network._browsing import LOOK_FOR, browse, is_set_up, steps_schema, what_is_missing

SCHEMA = {
    "type": "function",
    "function": {
        "name": "browser_task",
        "description": (
            "Opens web pages in a real browser, clicks and reads: for pages that web_fetch finds empty, since scripts draw them. "
            "It shows the text as passages to cite, and which links, buttons and fields there are. Submits no forms: see "
            "browser_submit."
        ),
        "parameters": {
            "type": "object",
            "properties": {"steps": steps_schema(), "look_for": LOOK_FOR},
            "required": ["steps"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=TIMEOUT_S,
    parallel_safe=False,
    outward=True,
    on_request=True,
    called_for_by=(
        r"\bbrowser\b|\bscreenshot|\bclick(?:s|ed|ing)?\b|\bjavascript\b",
        r"klick|bildschirmfoto|cliqu|haz clic|нажми|браузер|скриншот|点击|浏览器|クリック|ブラウザ|דפדפן",
    ),
)
NEEDS = what_is_missing
is_available = is_set_up


async def browser_task(steps: Sequence[Mapping[str, Any]], look_for: str = "", *, context: ToolContext) -> ToolOutput:
    """The passages of what was seen. Raises BrowserFailed, WebFailed and ToolsBusy."""
    return await browse(steps, look_for, context, may_submit=False)
