"""Answers about this installation from the documentation of its release, and what is known of it now."""

import asyncio
from datetime import datetime

from kit.version import release
from services.tools.adapters.http.web_passages import page_passages
from services.tools.context import ToolContext
from services.tools.manual.searching import load_manual
from services.tools.models import Passage, Policy, ToolOutput
from services.tools.passages.rendering import all_described, counted, fitted, sentences
from services.tools.web.pages import Page, PageText

SECTIONS_MAX = 12
DEFAULT_SECTIONS = 5
SCHEMA = {
    "type": "function",
    "function": {
        "name": "architecture_lookup",
        "description": (
            "Looks up how Groundwork, the system that this conversation runs on, works: its services, settings, API, limits and "
            "errors. Returns sections of the documentation of the installed release, to be cited, and the release. Not for what "
            "the user's documents say."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "question": {
                    "type": "string",
                    "description": "What is to be known, in English.",
                    "minLength": 1,
                    "maxLength": 1000,
                },
                "k": {
                    "type": "integer",
                    "description": f"Most sections to return. Default: {DEFAULT_SECTIONS}.",
                    "minimum": 1,
                    "maximum": SECTIONS_MAX,
                },
            },
            "required": ["question"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=30.0,
    self_contained=True,
    on_request=True,
    called_for_by=(
        r"\bgroundwork\b",
        r"\b(?:this|the) (?:system|installation|platform|service)\b",
        r"(?:dieses?|das|die) (?:system|installation|plattform)\b",
        r"(?:эт[ао]\w*|наш\w*) (?:систем\w*|установк\w*|платформ\w*)",
        r"(?:המערכת|ההתקנה|הפלטפורמה) (?:הזאת|הזו)",
    ),
)


async def architecture_lookup(context: ToolContext, question: str, k: int = DEFAULT_SECTIONS) -> ToolOutput:
    """`sections` in the order of how well they fit, and `release`."""
    passages = await asyncio.to_thread(_sections, question, k, context.now())
    shown = fitted(passages, context.settings.tools_text_tokens)
    content = {"release": release(), "sections": all_described(shown)}
    if not shown:
        content["note"] = "The documentation says nothing in these words. Ask in other words, in English."
        return ToolOutput(content, "The documentation says nothing in these words.")
    return ToolOutput(content, sentences(f"{counted(shown)} of the documentation."), tuple(shown))


def _sections(question: str, k: int, read_at: datetime) -> list[Passage]:
    return [
        page_passages(Page(f"groundwork://docs/{each.page.name}", PageText(each.page.text, each.page.title), read_at))[
            each.ordinal
        ]
        for each in load_manual().find(question, k)
    ]
