"""Searches GitHub for code, issues or pull requests. What it finds are passages that an answer may cite."""

from services.tools.adapters.http.web_passages import result_passages
from services.tools.connections.github import TEXT_MATCHES, TIMEOUT_S, Asked
from services.tools.connections.github_pages import code_results, issue_results
from services.tools.connections.records import GITHUB
from services.tools.context import ToolContext
from services.tools.models import Policy, ToolOutput
from services.tools.passages.findings import check_query
from services.tools.passages.rendering import all_described, fitted, quoted
from services.tools.toolbox.github._asking import ask

SCHEMA = {
    "type": "function",
    "function": {
        "name": "github_search",
        "description": (
            "Searches GitHub for code, issues or pull requests, also of private repositories of the connected account. "
            "github_read_file and github_read_issue read what was found whole."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "what": {"type": "string", "enum": ["code", "issues", "pull_requests"]},
                "query": {
                    "type": "string",
                    "description": "Words, and qualifiers of GitHub such as language:python, state:open, label:bug.",
                    "minLength": 1,
                    "maxLength": 200,
                },
                "repository": {
                    "type": "string",
                    "description": "Only in this one, as owner/name. Default: all.",
                    "pattern": r"^[\w.-]+/[\w.-]+$",
                    "maxLength": 140,
                },
                "top_k": {"type": "integer", "description": "Most results. Default: 5.", "minimum": 1, "maximum": 20},
            },
            "required": ["what", "query"],
            "additionalProperties": False,
        },
    },
}
CONNECTION = GITHUB
POLICY = Policy(
    timeout_s=TIMEOUT_S,
    called_for_by=(r"\bgit ?hub\b|\bpull requests?\b|\brepo(?:sitor(?:y|ies))?\b|\b(?:open |closed )?issues?\b",),
)
_QUALIFIERS = {"code": "", "issues": " is:issue", "pull_requests": " is:pull-request"}


async def github_search(
    what: str, query: str, repository: str = "", top_k: int = 5, *, context: ToolContext
) -> ToolOutput:
    """The best results as passages. Raises ToolError."""
    check_query(query)
    words = f"{query}{f' repo:{repository}' if repository else ''}{_QUALIFIERS[what]}"
    asked = Asked(
        f"/search/{'code' if what == 'code' else 'issues'}", {"q": words, "per_page": str(top_k)}, TEXT_MATCHES
    )
    answer = await ask(asked, context)
    results = code_results(answer) if what == "code" else issue_results(answer)
    shown = fitted(result_passages(results, context.now()), context.settings.tools_text_tokens)
    found = [
        {"url": each.metadata["url"], **described} for each, described in zip(shown, all_described(shown), strict=True)
    ]
    content: dict[str, object] = {"found_in_all": answer.get("total_count", len(found)), "found": found}
    if not found:
        content["message"] = "Nothing was found. Try other words."
    if answer.get("incomplete_results"):
        content["incomplete"] = "GitHub stopped before it had searched everything"
    said = f"{len(found)} results" if found else "Nothing"
    return ToolOutput(content, f"{said} found on GitHub for {quoted(query)}.", tuple(shown))
