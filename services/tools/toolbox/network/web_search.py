"""Searches the web. What it finds are passages that an answer may cite; web_fetch reads a page whole."""

from services.tools.adapters.http.web_passages import result_passages
from services.tools.adapters.http.web_search import TIMEOUT_S
from services.tools.context import ToolContext
from services.tools.models import Policy, ToolOutput
from services.tools.passages.findings import check_query
from services.tools.passages.rendering import all_described, fitted, quoted
from services.tools.passages.selection import without_duplicates
from services.tools.settings import ToolsSettings
from services.tools.web.searching import FRESHNESS, RESULTS_MAX, web_search_of

SCHEMA = {
    "type": "function",
    "function": {
        "name": "web_search",
        "description": (
            "Searches the web and returns the best pages with title, address, date and a snippet of each, to cite. For what the "
            "user's documents do not say, such as recent events. web_fetch reads a page whole."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "What to look for, in few words. Nothing confidential: it goes to a search engine.",
                    "minLength": 1,
                    "maxLength": 400,
                },
                "top_k": {
                    "type": "integer",
                    "description": "Most pages to return. Default: 5.",
                    "minimum": 1,
                    "maximum": RESULTS_MAX,
                },
                "freshness": {
                    "type": "string",
                    "enum": list(FRESHNESS),
                    "description": "Only pages of the last day, week, month or year. Default: any.",
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=TIMEOUT_S + 2.0,
    worth=1,
    key_arguments=("query", "freshness"),
    called_for_by=(
        r"\b(?:internet|online|google|web search|on the web|search the web|latest news|news)\b",
        r"\b(?:im (?:internet|netz|web)|nachrichten|sur (?:internet|le web)|actualit[eé]s|en (?:internet|l[ií]nea)|noticias)\b",
        r"интернет|новост|网上|互联网|新闻|インターネット|ニュース|인터넷|뉴스|الإنترنت|أخبار",
    ),
)
NEEDS = "set GROUNDWORK_TOOLS_WEB_SEARCH to a search engine: brave or searxng"


def is_available(settings: ToolsSettings) -> bool:
    """Whether there is a search engine."""
    return bool(settings.tools_web_search)


async def web_search(query: str, top_k: int = 5, freshness: str = "", *, context: ToolContext) -> ToolOutput:
    """The best pages, each once, as passages. Raises ToolError."""
    check_query(query)
    search = web_search_of(context.services.web_search)
    found = await search.search(query, freshness, tenant_id=context.caller.tenant_id, run=context.run_id)
    passages, _ = without_duplicates(result_passages(found, context.now()))
    shown = fitted(passages[:top_k], context.settings.tools_text_tokens)
    pages = [
        {"url": each.metadata["url"], **({"date": date} if (date := each.metadata.get("date")) else {}), **described}
        for each, described in zip(shown, all_described(shown), strict=True)
    ]
    content: dict[str, object] = {"engine": search.engine.name, "pages": pages}
    if not pages:
        content["message"] = "Nothing was found. Try other words."
    said = f"{len(pages)} page{'' if len(pages) == 1 else 's'}" if pages else "Nothing"
    return ToolOutput(content, f"{said} found by {search.engine.name} for {quoted(query)}.", tuple(shown))
