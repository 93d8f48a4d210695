"""A file of a connected service as passages that an answer may cite: those that fit what a model reads of one result."""

from typing import Any

from services.tools.adapters.http.web_passages import about, page_passages
from services.tools.context import ToolContext
from services.tools.errors import InvalidArguments, ToolUnavailable
from services.tools.models import ToolOutput
from services.tools.passages.choosing import ranked, within
from services.tools.passages.rendering import all_described, counted
from services.tools.web.pages import Page

LOOK_FOR: dict[str, Any] = {
    "type": "string",
    "description": "What you want to know: of a long text, the passages that fit best are shown.",
    "maxLength": 500,
}
FROM_PASSAGE: dict[str, Any] = {
    "type": "integer",
    "description": "Reads a long text on, from here. Default: 0, the beginning.",
    "minimum": 0,
    "maximum": 10_000,
}


async def read_file(url: str, name: str, data: bytes, context: ToolContext) -> Page:
    """What a file says, by the readers of uploaded files in their sandbox. Raises ToolError."""
    if context.services.files is None:
        raise ToolUnavailable("files are not read here")
    text = await context.services.files.read_file(name, data)
    return Page(url, text, context.now(), text.is_cut)


async def shown_page(page: Page, look_for: str, from_passage: int, context: ToolContext) -> ToolOutput:
    """The passages of a page from one on; with `look_for` those that fit best. Raises InvalidArguments."""
    passages = page_passages(page)
    if from_passage and from_passage >= len(passages):
        raise InvalidArguments(f"it has {len(passages)} passages: from_passage is at most {len(passages) - 1}")
    rest = passages[from_passage:]
    found = within(await ranked(rest, look_for, context), context.settings.tools_text_tokens)
    shown = sorted(found, key=lambda passage: passage.ordinal)
    content: dict[str, object] = {**about(page), "passages": all_described(shown)}
    if len(shown) < len(rest):
        content["more"] = f"It has {len(passages)} passages; from_passage={shown[-1].ordinal + 1} reads on."
    return ToolOutput(content, f"{counted(shown)} read: {page.text.title}.", tuple(shown))
