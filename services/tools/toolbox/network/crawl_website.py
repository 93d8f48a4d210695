"""Reads several pages of a web site, from a page or a sitemap on; their texts are passages that an answer may cite."""

from services.tools.adapters.http.web_passages import about, page_passages
from services.tools.context import ToolContext
from services.tools.models import Passage, Policy, ToolOutput
from services.tools.passages.choosing import ranked, within
from services.tools.passages.rendering import all_described, fitted
from services.tools.settings import ToolsSettings
from services.tools.web.crawling import Crawled, Crawler, CrawlTask
from services.tools.web.pages import URL_CHARACTERS_MAX
from services.tools.web.reader import web_of

_TIME_S = 60.0
_PAGES_MAX, _DEPTH_MAX = 20, 5
SCHEMA = {
    "type": "function",
    "function": {
        "name": "crawl_website",
        "description": (
            "Reads several pages of one web site, following its links from a page, or from a sitemap (https://…/sitemap.xml). It "
            "takes up to a minute. For one page use web_fetch."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "url": {
                    "type": "string",
                    "description": "Where to begin, for example https://docs.example.com/guide/",
                    "minLength": 8,
                    "maxLength": URL_CHARACTERS_MAX,
                },
                "look_for": {
                    "type": "string",
                    "description": "What you want to know: the passages of all pages that fit best are shown.",
                    "maxLength": 500,
                },
                "pages": {
                    "type": "integer",
                    "description": "Most pages to read. Default: 8.",
                    "minimum": 1,
                    "maximum": _PAGES_MAX,
                },
                "depth": {
                    "type": "integer",
                    "description": "How many links away from the first page. Default: 2.",
                    "minimum": 0,
                    "maximum": _DEPTH_MAX,
                },
                "path": {
                    "type": "string",
                    "description": "Follow only addresses whose path begins so, for example /guide/. Default: any.",
                    "maxLength": 300,
                },
                "from_page": {
                    "type": "integer",
                    "description": "Goes on with a crawl of the same arguments after so many pages. Default: 0.",
                    "minimum": 0,
                    "maximum": 1_000,
                },
            },
            "required": ["url"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=_TIME_S + 10.0,
    parallel_safe=False,
    outward=True,
    called_for_by=(
        r"\bcrawl|\bsitemap|\b(?:whole|entire) (?:web ?)?site\b|\ball pages\b",
        r"ganze (?:web)?seite|tout le site|todo el sitio|весь сайт|整个网站|サイト全体",
    ),
    on_request=True,
)
NEEDS = "set GROUNDWORK_TOOLS_WEB_HOSTS to the web sites that may be read, or to * for all"


def is_available(settings: ToolsSettings) -> bool:
    """Whether there is a web site to read."""
    return bool(settings.tools_web_hosts)


async def crawl_website(
    url: str,
    look_for: str = "",
    pages: int = 8,
    depth: int = 2,
    path: str = "",
    from_page: int = 0,
    *,
    context: ToolContext,
) -> ToolOutput:
    """The passages of the pages that fit what a model reads of one result. Raises WebFailed and WebBusy."""
    crawler = Crawler(
        web_of(context.services.web),
        context.run_id,
        context.progress,
        time_s=_TIME_S,
        delay_s=context.settings.tools_web_crawl_delay_s,
    )
    crawled = await crawler.crawl(CrawlTask(url, pages, depth, path, from_page))
    shown = await _shown(crawled, look_for, context)
    content = {
        "pages": [about(page) for page in crawled.pages],
        "passages": all_described(shown),
        **_ending(crawled, from_page + len(crawled.pages)),
    }
    return ToolOutput(content, f"{len(crawled.pages)} pages read, from {url[:120]} on.", tuple(shown))


async def _shown(crawled: Crawled, look_for: str, context: ToolContext) -> list[Passage]:
    budget = context.settings.tools_text_tokens
    of_pages = [page_passages(page) for page in crawled.pages]
    if look_for.strip():
        return within(await ranked([each for page in of_pages for each in page], look_for, context), budget)
    return fitted([page[0] for page in of_pages], budget)


def _ending(crawled: Crawled, read: int) -> dict[str, object]:
    """What is not there, for the model."""
    rest: dict[str, object] = {}
    if crawled.failed:
        rest["failed"] = [{"url": url, "why": why} for url, why in crawled.failed]
    if crawled.stopped:
        rest["stopped"] = crawled.stopped
    if crawled.left:
        rest["more"] = (
            f"At least {crawled.left} more addresses are known: from_page={read} goes on. web_fetch reads a page whole."
        )
    return rest
