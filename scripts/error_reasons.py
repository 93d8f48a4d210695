"""Makes docs/errors.md: every reason that an answer, an event or a call of a tool may carry, from the classes of errors and from
where they are raised."""

import ast
import importlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from kit.errors import GroundworkError
from services.gateway.errors import HTTP_STATUS_BY_REASON
from services.orchestrator.log.events import Degradation, RunError
from services.tools.errors import ToolError

_ROOT = Path(__file__).resolve().parent.parent
_LONGEST = 240
_WORTH_READING = ("reason", "raise ", "Degradation(")
_INTRODUCTION = """# Reasons of errors

Generated from the code by `make gen`. A client may switch on `reason`: it is a constant word, while the message is for a person.
`…` stands for what the message names.

An answer that is no success is `application/problem+json` with `reason`, `code`, `retryable`, `detail`, and the HTTP status below;
an `error` event of a run has `code`, `reason`, `message` and `retryable`. A retryable error may be gone when you ask again.
"""


@dataclass
class _Reason:
    """A reason with one code."""

    rooms: set[str] = field(default_factory=set)
    docstring: str = ""
    message: str = ""
    """The first one that says something."""

    @property
    def meaning(self) -> str:
        return self.docstring or self.message


def errors_page() -> str:
    """The page. Raises ValueError for a reason without an explanation."""
    found: defaultdict[tuple[str, str], _Reason] = defaultdict(_Reason)
    for path in sorted((*(_ROOT / "kit").rglob("*.py"), *(_ROOT / "services").rglob("*.py"))):
        text = path.read_text("utf-8")
        if path.name != "__main__.py" and "testing" not in path.parts and any(word in text for word in _WORTH_READING):
            _read(path, ast.parse(text), found)
    unexplained = sorted(reason for (reason, _), each in found.items() if not each.meaning)
    if unexplained:
        raise ValueError(f"say in the docstring of the error what it means: {', '.join(unexplained)}")
    return "\n".join([_INTRODUCTION, *_tables(found)])


def _read(path: Path, tree: ast.Module, found: defaultdict[tuple[str, str], _Reason]) -> None:
    module = importlib.import_module(".".join(path.relative_to(_ROOT).with_suffix("").parts).removesuffix(".__init__"))
    parts = path.relative_to(_ROOT).parts
    room = parts[1] if parts[0] == "services" else "every service"
    for kind in _classes(module):
        each = found[kind.reason, _code(kind)]
        each.rooms.add(room)
        each.docstring = each.docstring or _sentence(vars(kind).get("__doc__"))
    for reason, code, message in _raised(module, tree):
        each = found[reason, code]
        each.rooms.add(room)
        each.message = each.message or message


def _classes(module: ModuleType) -> Iterator[Any]:
    for kind in vars(module).values():
        is_error = isinstance(kind, type) and issubclass(kind, GroundworkError | ToolError)
        if is_error and kind.__module__ == module.__name__ and "reason" in vars(kind):
            yield kind


def _raised(module: ModuleType, tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Reason, code and message of each error and note that the module makes with a message of its own."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        assert isinstance(call.func, ast.Name)
        kind = vars(module).get(call.func.id)
        texts = [_text(each, tree) for each in call.args]
        named = next((_text(each.value, tree) for each in call.keywords if each.arg == "reason"), "")
        if kind in (Degradation, RunError) and len(texts) > 1 and texts[1] and "…" not in texts[1]:
            meaning = texts[2] if len(texts) > 2 and texts[2] else "The message says what."
            yield texts[1], texts[0] if kind is RunError else _DEGRADED, meaning
        elif isinstance(kind, type) and issubclass(kind, GroundworkError | ToolError) and texts:
            yield named or str(kind.reason), _code(kind), _sentence(texts[0] or kind.__doc__)


_DEGRADED, _TOOL = "degraded", "tool"


def _code(kind: Any) -> str:
    return kind.code.name if issubclass(kind, GroundworkError) else _TOOL


def _text(node: ast.expr, tree: ast.Module) -> str:
    """A text, also one that was given a name before: of an f-string with … for what it names; empty for anything else."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(str(each.value) if isinstance(each, ast.Constant) else "…" for each in parts)
        case ast.BinOp(left=left, right=right):
            return _text(left, tree) + (_text(right, tree) or "…")
        case ast.IfExp(body=body):
            return _text(body, tree)
        case ast.Name(id=name):
            return next((text for each in _given_to(name, node.lineno, tree) if (text := _text(each, tree))), "")
        case _:
            return ""


def _given_to(name: str, before: int, tree: ast.Module) -> list[ast.expr]:
    """What the name was given in lines before, the last first."""
    assignments = (each for each in ast.walk(tree) if isinstance(each, ast.Assign) and each.lineno < before)
    given = [each for each in assignments if any(isinstance(to, ast.Name) and to.id == name for to in each.targets)]
    return [each.value for each in sorted(given, key=lambda each: -each.lineno)]


def _sentence(text: str | None) -> str:
    """The first paragraph, on one line, as a cell of a table."""
    words = " ".join((text or "").strip().split("\n\n")[0].split()).replace("|", "&#124;")
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1].rstrip() + "…"


def _tables(found: dict[tuple[str, str], _Reason]) -> Iterator[str]:
    yield "## Of answers, and of runs that failed\n"
    yield "| reason | code | HTTP | retryable | from | meaning |\n|---|---|---|---|---|---|"
    codes = {error.code.name: error.code.value for error in GroundworkError.__subclasses__()}
    for (reason, code), each in sorted(found.items()):
        if code in codes:
            row = codes[code]
            retryable = "yes" if row.retryable else ""
            yield f"| `{reason}` | {code} | {HTTP_STATUS_BY_REASON.get(reason, row.http_status)} | {retryable} | {_cells(each)} |"
    for title, chosen in (("Of calls of tools (`tool_result`)", _TOOL), ("Of what was degraded", _DEGRADED)):
        yield f"\n## {title}\n\n| reason | from | meaning |\n|---|---|---|"
        yield from (
            f"| `{reason}` | {_cells(each)} |" for (reason, code), each in sorted(found.items()) if code == chosen
        )
    yield ""


def _cells(each: _Reason) -> str:
    return f"{', '.join(sorted(each.rooms))} | {each.meaning}"
