"""The e-mail that an answer becomes: its text, what was made besides it, and the sources that its marks stand for."""

from collections.abc import Mapping, Sequence
from typing import Any

from services.orchestrator.log.events import Answer

SUBJECT_CHARACTERS_MAX = 150
TEXT_CHARACTERS_MAX = 45_000
"""Less than `send_email` takes; what is longer ends with a note."""
_CUT = "\n\n[The answer is longer than an e-mail may be. This is its beginning.]"
_MOST_SOURCES = 100


def mail_of(recipients: Sequence[str], subject: str, answer: Answer) -> Mapping[str, Any]:
    """Arguments of `send_email`."""
    return {"to": list(recipients), "subject": _subject(subject), "text": _text(answer)}


def _subject(text: str) -> str:
    """One line of printable characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= SUBJECT_CHARACTERS_MAX else f"{line[: SUBJECT_CHARACTERS_MAX - 1].rstrip()}…"


def _text(answer: Answer) -> str:
    made = [f"{each.title}\n\n{each.outline}" for each in answer.artefacts if each.outline not in answer.text]
    body = "\n\n".join(filter(None, [answer.text.strip(), *made]))
    sources = "\n".join(
        f"[{each.number}] {each.document_name}{f', page {each.page}' if each.page else ''}"
        for each in answer.citations[:_MOST_SOURCES]
    )
    ending = f"\n\nSources:\n{sources}" if sources else ""
    room = TEXT_CHARACTERS_MAX - len(ending)
    if len(body) > room:
        body = body[: room - len(_CUT)].rsplit("\n", 1)[0].rstrip() + _CUT
    return body + ending
