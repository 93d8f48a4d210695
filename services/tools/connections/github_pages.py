"""What GitHub's API says, as pages whose passages an answer may cite: files by their lines, issues by who wrote when."""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from services.tools.errors import ToolError
from services.tools.web.pages import Page, PageText
from services.tools.web.searching import Result
from services.tools.web.sections import PASSAGE_CHARACTERS, PagePassage

_LINE_CHARACTERS_MAX = 500
"""Of one line that is cited: a longer one is of a program, not of a person."""
_SNIPPET_CHARACTERS = 1_000
_MARKDOWN = (".md", ".markdown", ".rst", ".txt")


class NotText(ToolError):
    """What is read is no file of text."""

    reason = "GITHUB_NOT_TEXT"


def code_results(answer: Mapping[str, Any]) -> list[Result]:
    """The files that a search of code found, each with the lines around what was found."""
    return [
        Result(
            str(item["html_url"]),
            f"{item['repository']['full_name']}: {item['path']}",
            "\n…\n".join(str(match.get("fragment", "")) for match in item.get("text_matches") or ())[
                :_SNIPPET_CHARACTERS
            ],
        )
        for item in answer["items"]
    ]


def issue_results(answer: Mapping[str, Any]) -> list[Result]:
    """The issues that a search found, each with the beginning of its text."""
    return [
        Result(
            str(item["html_url"]),
            f"{_repository_of(item)}#{item['number']} ({item['state']}): {item['title']}",
            str(item.get("body") or "")[:_SNIPPET_CHARACTERS],
            str(item.get("updated_at") or "")[:10],
        )
        for item in answer["items"]
    ]


def file_page(repository: str, data: Mapping[str, Any], read_at: datetime) -> Page:
    """A file. Raises NotText."""
    path = str(data.get("path", ""))
    if data.get("encoding") != "base64":
        raise NotText(f"{path} is larger than 1 MB, or no file; search for what you need of it")
    try:
        text = base64.b64decode(str(data["content"])).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise NotText(f"{path} is no file of text") from error
    if not text.strip():
        raise NotText(f"{path} is empty")
    parts = () if path.lower().endswith(_MARKDOWN) else tuple(_lines(text))
    return Page(str(data["html_url"]), PageText(text, f"{repository}: {path}", parts=parts), read_at)


def issue_page(
    repository: str, issue: Mapping[str, Any], comments: Sequence[Mapping[str, Any]], read_at: datetime
) -> Page:
    """An issue or a pull request with its comments, a passage each."""
    parts, at = [], 0
    for written in (issue, *comments):
        text = str(written.get("body") or "").strip() or "(no text)"
        parts.append(PagePassage(text, (_written(written),), at))
        at += len(text) + 2
    title = f"{repository}#{issue['number']}: {issue['title']}"
    author, date = _author(issue), str(issue["updated_at"])[:10]
    return Page(
        str(issue["html_url"]),
        PageText("\n\n".join(part.text for part in parts), title, date, author, parts=parts),
        read_at,
    )


def _lines(text: str) -> Iterator[PagePassage]:
    """Passages of whole lines, each under its numbers."""
    held: list[str] = []
    first, begins, at = 1, 0, 0

    def passage(last: int) -> PagePassage:
        return PagePassage("".join(held).rstrip(), (f"lines {first}–{last}",), begins)

    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if held and at + len(line) - begins > PASSAGE_CHARACTERS:
            yield passage(number - 1)
            held, first, begins = [], number, at
        held.append(line if len(line) <= _LINE_CHARACTERS_MAX else f"{line[:_LINE_CHARACTERS_MAX]}…\n")
        at += len(line)
    if "".join(held).strip():
        yield passage(first + len(held) - 1)


def _written(what: Mapping[str, Any]) -> str:
    return f"{_author(what)}, {str(what['created_at'])[:10]}"


def _author(what: Mapping[str, Any]) -> str:
    return str((what.get("user") or {}).get("login") or "nobody")


def _repository_of(item: Mapping[str, Any]) -> str:
    """`owner/name`, which a found issue has in the address of its repository."""
    return "/".join(str(item["repository_url"]).rsplit("/", 2)[-2:])
