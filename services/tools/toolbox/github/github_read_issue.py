"""Reads an issue or a pull request on GitHub with its comments, as passages that an answer may cite."""

from services.tools.adapters.http.web_passages import about, page_passages
from services.tools.connections.github import TIMEOUT_S, Asked, repository_path
from services.tools.connections.github_pages import issue_page
from services.tools.connections.records import GITHUB
from services.tools.context import ToolContext
from services.tools.models import Policy, ToolOutput
from services.tools.passages.choosing import within
from services.tools.passages.rendering import all_described
from services.tools.toolbox.github._asking import ask

SCHEMA = {
    "type": "function",
    "function": {
        "name": "github_read_issue",
        "description": "Reads an issue or a pull request on GitHub, with its state, labels and comments, as passages to cite.",
        "parameters": {
            "type": "object",
            "properties": {
                "repository": {"type": "string", "description": "As owner/name.", "minLength": 3, "maxLength": 140},
                "number": {"type": "integer", "minimum": 1, "maximum": 2_000_000_000},
                "page": {
                    "type": "integer",
                    "description": "Of the comments, 50 a page. Default: 1.",
                    "minimum": 1,
                    "maximum": 1_000,
                },
            },
            "required": ["repository", "number"],
            "additionalProperties": False,
        },
    },
}
CONNECTION = GITHUB
POLICY = Policy(timeout_s=2 * TIMEOUT_S, called_for_by=(r"\bgit ?hub\b|\bissues?\b|\bpull requests?\b|#\d+\b",))
_PER_PAGE = 50


async def github_read_issue(repository: str, number: int, page: int = 1, *, context: ToolContext) -> ToolOutput:
    """What was written, the issue's own text first, as far as a model reads one result. Raises ToolError."""
    path = repository_path(repository, "issues", str(number))
    issue = await ask(Asked(path), context)
    params = {"per_page": str(_PER_PAGE), "page": str(page)}
    comments = await ask(Asked(f"{path}/comments", params), context) if issue.get("comments") else []
    read = issue_page(repository, issue, comments, context.now())
    passages = page_passages(read)
    shown = within(passages, context.settings.tools_text_tokens)
    content: dict[str, object] = {
        **about(read),
        "state": issue["state"],
        "labels": [each if isinstance(each, str) else each.get("name") for each in issue.get("labels", ())],
        "comments_in_all": issue.get("comments", 0),
        "passages": all_described(shown),
    }
    if len(shown) < len(passages):
        content["more"] = f"{len(passages) - len(shown)} more comments of this page did not fit."
    elif page * _PER_PAGE < int(issue.get("comments", 0)):
        content["more"] = f"page={page + 1} reads the next comments."
    return ToolOutput(content, f"{repository}#{number} read, with {len(comments)} comments.", tuple(shown))
