"""Fills in and submits a form of a web page in a real browser, once and with a person's approval."""

from collections.abc import Mapping, Sequence
from typing import Any

from services.tools.browser.steps import TIMEOUT_S
from services.tools.context import ToolContext
from services.tools.models import Effect, Policy, ToolOutput
from services.tools.toolbox.network._browsing import LOOK_FOR, browse, is_set_up, steps_schema, what_is_missing

SCHEMA = {
    "type": "function",
    "function": {
        "name": "browser_submit",
        "description": (
            "Opens a web page in a real browser, fills in a form and submits it. A person is asked before each one, and sees all "
            "steps. To read pages, use browser_task."
        ),
        "parameters": {
            "type": "object",
            "properties": {"steps": steps_schema("submit"), "look_for": LOOK_FOR},
            "required": ["steps"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=TIMEOUT_S,
    parallel_safe=False,
    needs_approval=True,
    effect=Effect.ONCE,
    outward=True,
    on_request=True,
    called_for_by=(
        r"\b(?:fill (?:in|out)|submit|sign up|register)\b[\s\S]{0,80}\b(?:form|page|site|newsletter)\b|\bonline form\b",
        r"formular|formulaire|formulario|заполни|форму|表单|フォーム|טופס",
    ),
)
NEEDS = what_is_missing
is_available = is_set_up


async def browser_submit(steps: Sequence[Mapping[str, Any]], look_for: str = "", *, context: ToolContext) -> ToolOutput:
    """What the page says after the form was submitted. Raises BrowserFailed, and CallInDoubt where nobody knows whether it was."""
    return await browse(steps, look_for, context, may_submit=True)
