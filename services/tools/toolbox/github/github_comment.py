"""Comments on an issue or a pull request on GitHub, once and with a person's approval."""

from services.tools.connections.github import TIMEOUT_S, Asked, repository_path
from services.tools.connections.records import GITHUB
from services.tools.context import ToolContext
from services.tools.models import Effect, Policy, ToolOutput
from services.tools.toolbox.github._asking import ask

SCHEMA = {
    "type": "function",
    "function": {
        "name": "github_comment",
        "description": (
            "Comments on an issue or a pull request on GitHub, in the name of the connected account. A person is asked before."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "repository": {"type": "string", "description": "As owner/name.", "minLength": 3, "maxLength": 140},
                "number": {"type": "integer", "minimum": 1, "maximum": 2_000_000_000},
                "text": {"type": "string", "description": "In Markdown.", "minLength": 1, "maxLength": 60_000},
            },
            "required": ["repository", "number", "text"],
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
    called_for_by=(r"\bcomment\b|\breply\b|\banswer (?:the|that) issue\b|#\d+\b",),
)


async def github_comment(repository: str, number: int, text: str, *, context: ToolContext) -> ToolOutput:
    """Address of the comment. Raises ToolError and CallInDoubt."""
    asked = Asked(repository_path(repository, "issues", str(number), "comments"), body={"body": text})
    made = await ask(asked, context)
    return ToolOutput({"url": made.get("html_url")}, f"Commented on {repository}#{number}: {made.get('html_url')}")
