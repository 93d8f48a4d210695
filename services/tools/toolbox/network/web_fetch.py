"""Reads a page or a file of the web: its main text, as passages that an answer may cite."""

from collections.abc import Sequence

from services.tools.adapters.http.web_passages import about, page_name, page_passages
from services.tools.context import ToolContext
from services.tools.errors import InvalidArguments
from services.tools.models import Passage, Policy, ToolOutput
from services.tools.passages.choosing import ranked, within
from services.tools.passages.rendering import all_described, counted
from services.tools.settings import ToolsSettings
from services.tools.web import fetching, reading
from services.tools.web.pages import URL_CHARACTERS_MAX
from services.tools.web.reader import web_of

SCHEMA = {
    "type": "function",
    "function": {
        "name": "web_fetch",
        "description": (
            "Reads a web page, or a PDF or office file of the web: its text with title and date, without menus, as passages to "
            "cite. Not for pages behind a login."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "url": {
                    "type": "string",
                    "description": "For example https://docs.example.com/fees",
                    "minLength": 8,
                    "maxLength": URL_CHARACTERS_MAX,
                },
                "look_for": {
                    "type": "string",
                    "description": "What you want to know: of a long page, the passages that fit best are shown.",
                    "maxLength": 500,
                },
                "from_passage": {
                    "type": "integer",
                    "description": "Reads a long page on, from here. Default: 0, the beginning.",
                    "minimum": 0,
                    "maximum": 100_000,
                },
                "links": {"type": "boolean", "description": "Whether to list the page's links, too. Default: false."},
            },
            "required": ["url"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=fetching.TIMEOUT_S + reading.FILE_TIMEOUT_S + 5.0,
    worth=1,
    outward=True,
    called_for_by=(
        r"https?://|\bwww\.",
        r"\b(?:url|web ?sites?|web ?pages?|web address|online|internet)\b",
        r"web(?:seite|site)|page web|p[aá]gina web|pagina web|sito web|strona? internetow",
        r"\bсайт|веб-?страниц|网页|网址|网站|ウェブ|웹 ?(?:사이트|페이지)|موقع",
    ),
)
NEEDS = "set GROUNDWORK_TOOLS_WEB_HOSTS to the web sites that may be read, or to * for all"
_LINKS_SHOWN = 60


def is_available(settings: ToolsSettings) -> bool:
    """Whether there is a web site to read."""
    return bool(settings.tools_web_hosts)


async def web_fetch(
    url: str, look_for: str = "", from_passage: int = 0, links: bool = False, *, context: ToolContext
) -> ToolOutput:
    """The passages of the page that fit what a model reads of one result. Raises WebFailed and WebBusy."""
    page = await web_of(context.services.web).read(url, context.run_id)
    passages = page_passages(page)
    if from_passage and from_passage >= len(passages):
        raise InvalidArguments(f"the page has {len(passages)} passages: from_passage is at most {len(passages) - 1}")
    rest = passages[from_passage:]
    found = within(await ranked(rest, look_for, context), context.settings.tools_text_tokens)
    shown = sorted(found, key=lambda passage: passage.ordinal)
    content = {**about(page), "passages": all_described(shown)}
    if len(shown) < len(rest):
        content["more"] = _more(passages, shown, look_for)
    if links:
        content["links"] = [{"text": link.text, "url": link.url} for link in page.text.links[:_LINKS_SHOWN]]
    return ToolOutput(content, f"{counted(shown)} read: {page_name(page)}.", tuple(shown))


def _more(passages: Sequence[Passage], shown: Sequence[Passage], look_for: str) -> str:
    if look_for:
        return f"The page has {len(passages)} passages; these fit best. Look for something else, or use from_passage."
    return f"The page goes on: from_passage={shown[-1].ordinal + 1} reads on; it has {len(passages)} passages."
