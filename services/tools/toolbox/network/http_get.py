"""Reads from an HTTP server that the operator has listed. What writes is `http_request`: policy belongs to a tool, and reading
needs no approval."""

from services.tools.adapters.http.http_servers import TIMEOUT_S, URL_CHARACTERS_MAX, Request, ask, is_set_up
from services.tools.context import ToolContext
from services.tools.models import Policy, ToolOutput
from services.tools.settings import ToolsSettings

SCHEMA = {
    "type": "function",
    "function": {
        "name": "http_get",
        "description": "Reads text or JSON from a web address of a host that this installation allows. Changes nothing.",
        "parameters": {
            "type": "object",
            "properties": {
                "url": {
                    "type": "string",
                    "description": "For example https://api.example.com/v1/orders?customer=7",
                    "minLength": 8,
                    "maxLength": URL_CHARACTERS_MAX,
                },
                "method": {
                    "type": "string",
                    "enum": ["GET", "HEAD"],
                    "description": "HEAD: the status alone. Default: GET.",
                },
            },
            "required": ["url"],
            "additionalProperties": False,
        },
    },
}
POLICY = Policy(
    timeout_s=TIMEOUT_S,
    called_for_by=(
        r"https?://|\bwww\.",
        r"\b(?:url|web ?sites?|web ?pages?|web address|api)\b",
        r"web(?:seite|site)|page web|p[aá]gina web|pagina web|sito web|strona? internetow",
        r"\bсайт|веб-?страниц|网页|网址|网站|ウェブ|웹 ?(?:사이트|페이지)|موقع",
    ),
)
NEEDS = "set GROUNDWORK_TOOLS_HTTP_HOSTS to the hosts that may be asked"


def is_available(settings: ToolsSettings) -> bool:
    """Whether there is a host to ask."""
    return is_set_up(settings)


async def http_get(url: str, method: str = "GET", *, context: ToolContext) -> ToolOutput:
    """Status and text of the answer, after redirects. Raises HttpFailed."""
    answer = await ask(Request(method, url), context.settings, follow=True, repeatable=True)
    return ToolOutput(answer.content(), answer.summary())
