"""Documents of a collection as files: what is uploaded is what a user would have."""

import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from evals.datasets.models import Document

FORMATS = ("md", "txt")
_SPECIAL = re.compile(r"([\\`*_\[\]<>&#|~])")
_LINE_START = re.compile(r"^(\s*)(?:([-+=])|(\d+)([.)]))", re.MULTILINE)


def write_files(documents: Sequence[Document], folder: Path, file_format: str) -> dict[str, Path]:
    """One file a document; its name → where it lies. Names are the documents' ids, made safe."""
    files: dict[str, Path] = {}
    for number, document in enumerate(documents):
        name = file_name(document.document_id, file_format)
        path = folder / f"{number:07d}.{file_format}"
        path.write_text(as_markdown(document) if file_format == "md" else as_text(document), "utf-8")
        files[name] = path
    return files


def file_name(document_id: str, file_format: str) -> str:
    """An id of any characters as a file name; different ids have different names."""
    return f"{quote(document_id, safe='')}.{file_format}"


def as_text(document: Document) -> str:
    """The title, an empty line, the text."""
    return "\n\n".join(part for part in (document.title, document.text) if part) + "\n"


def as_markdown(document: Document) -> str:
    """The title as the heading, and the text so escaped that a reader of Markdown sees the same characters."""
    title = f"# {_escape(' '.join(document.title.split()))}" if document.title else ""
    return "\n\n".join(part for part in (title, _escape(document.text)) if part) + "\n"


def _escape(text: str) -> str:
    return _LINE_START.sub(r"\1\3\\\2\4", _SPECIAL.sub(r"\\\1", text))
