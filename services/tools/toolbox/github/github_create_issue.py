"""Opens an issue in a repository on GitHub, once and with a person's approval."""

from services.tools.connections.github import TIMEOUT_S, Asked, repository_path
from services.tools.connections.records import GITHUB
from services.tools.context import ToolContext
from services.tools.models import Effect, Policy, ToolOutput
from services.tools.toolbox.github._asking import ask

SCHEMA = {
    "type": "function",
    "function": {
        "name": "github_create_issue",
        "description": "Opens an issue in a repository on GitHub, in the name of the connected account. A person is asked before.",
        "parameters": {
            "type": "object",
            "properties": {
                "repository": {"type": "string", "description": "As owner/name.", "minLength": 3, "maxLength": 140},
                "title": {"type": "string", "minLength": 1, "maxLength": 256},
                "text": {"type": "string", "description": "The whole issue, in Markdown.", "maxLength": 60_000},
                "labels": {
                    "type": "array",
                    "items": {"type": "string", "minLength": 1, "maxLength": 50},
                    "maxItems": 20,
                    "description": "Labels that the repository has.",
                },
            },
            "required": ["repository", "title", "text"],
            "additionalProperties": False,
        },
    },
}
CONNECTION = GITHUB
POLICY = Policy(
    timeout_s=TIMEOUT_S,
    parallel_safe=False,
    needs_approval=True,
    effect=Effect.ONCE,
    called_for_by=(r"\bissues?\b|\bbug report\b|\bticket\b",),
)


async def github_create_issue(
    repository: str, title: str, text: str, labels: list[str] | None = None, *, context: ToolContext
) -> ToolOutput:
    """Number and address of the issue. Raises ToolError and CallInDoubt."""
    body = {"title": title, "body": text, **({"labels": labels} if labels else {})}
    made = await ask(Asked(repository_path(repository, "issues"), body=body), context)
    content = {"number": made.get("number"), "url": made.get("html_url")}
    return ToolOutput(content, f"Issue {repository}#{content['number']} opened: {content['url']}")
