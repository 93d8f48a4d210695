"""What a document is called when it does not say so itself."""

import re
from pathlib import PurePath

_GENERATED = re.compile(
    r"^(untitled|\(anonymous\)|document\d*|microsoft word - .*|adobe \w+ pdf|(powerpoint )?presentation\d*|word document"
    r"|slide \d+"
    r"|.*\.(docx?|dotx?|tex|dvi|indd|pdf|qxd|e?ps|pptx?|xlsx?|od[tsp]|rtf|txt|html?|wpd|p65|fm|exe|tmp|tiff?|jpe?g|png))$",
    re.IGNORECASE,
)


def title_from(name: str) -> str:
    """The file's name without its extension; the end of a date or a version is none."""
    path = PurePath(name)
    return path.name if path.suffix[1:].isdigit() else path.stem or name


def title_or_name(found: str | None, name: str) -> str:
    """The title that a format's metadata holds, unless a program put rubbish there."""
    title = " ".join((found or "").split())
    if len(title) < 3 or len(title) > 300 or _GENERATED.match(title):
        return title_from(name)
    return title
