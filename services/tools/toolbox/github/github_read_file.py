"""Reads a file of a repository on GitHub, or lists a folder. The file's lines are passages that an answer may cite."""

from services.tools.connections.github import TIMEOUT_S, Asked, repository_path
from services.tools.connections.github_pages import file_page
from services.tools.connections.records import GITHUB
from services.tools.context import ToolContext
from services.tools.models import Policy, ToolOutput
from services.tools.toolbox._reading import FROM_PASSAGE, LOOK_FOR, shown_page
from services.tools.toolbox.github._asking import ask

SCHEMA = {
    "type": "function",
    "function": {
        "name": "github_read_file",
        "description": "Reads a text file of a repository on GitHub as passages to cite, or lists a folder of it.",
        "parameters": {
            "type": "object",
            "properties": {
                "repository": {"type": "string", "description": "As owner/name.", "minLength": 3, "maxLength": 140},
                "path": {
                    "type": "string",
                    "description": "Of the file or folder, such as src/main.py. Default: the repository's top folder.",
                    "maxLength": 1_000,
                },
                "ref": {
                    "type": "string",
                    "description": "A branch, tag or commit. Default: the main branch.",
                    "maxLength": 250,
                },
                "look_for": LOOK_FOR,
                "from_passage": FROM_PASSAGE,
            },
            "required": ["repository"],
            "additionalProperties": False,
        },
    },
}
CONNECTION = GITHUB
POLICY = Policy(
    timeout_s=TIMEOUT_S, called_for_by=(r"\bgit ?hub\b|\brepo(?:sitory)?\b|\breadme\b|\bsource (?:code|file)\b",)
)
_LISTED_MAX = 200


async def github_read_file(
    repository: str, path: str = "", ref: str = "", look_for: str = "", from_passage: int = 0, *, context: ToolContext
) -> ToolOutput:
    """The passages of the file that a model reads of one result; of a folder what is in it. Raises ToolError."""
    place = repository_path(repository, "contents", *([path] if path.strip("/") else []))
    data = await ask(Asked(place, {"ref": ref} if ref else {}), context)
    if isinstance(data, list):
        return _folder(f"{repository}/{path.strip('/')}", data)
    return await shown_page(file_page(repository, data, context.now()), look_for, from_passage, context)


def _folder(name: str, entries: list[dict[str, object]]) -> ToolOutput:
    listed = [{"name": each.get("name"), "type": each.get("type")} for each in entries[:_LISTED_MAX]]
    content: dict[str, object] = {"folder": name, "entries": listed}
    if len(entries) > _LISTED_MAX:
        content["more"] = f"The folder has {len(entries)} entries; these are the first."
    return ToolOutput(content, f"{len(entries)} entries in {name}.")
