"""What the rules that learn without a model read: statements of people about themselves, and next to nothing in other lines."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from services.memory.facts.statements import languages, read_statements

_SET = Path(__file__).parents[2] / "tests" / "data" / "memory" / "statements.json"
_AT = datetime(2026, 11, 27, 9, tzinfo=UTC)
"""The rules read days of the week: the same each time."""


def render_rules(questions: Sequence[str]) -> str:
    """Two tables: facts from lines that state nothing, and the share of statements that are read, by language.

    `questions`: the questions of the dialogues. They state nothing, either.
    """
    texts = json.loads(_SET.read_text("utf-8"))
    lines = ["| lines that state nothing | count | facts |", "|---|---|---|"]
    for name, said in (
        ("small talk", texts["small_talk"]),
        ("one-off questions", texts["one_off"]),
        ("questions of the dialogues", questions),
    ):
        lines.append(f"| {name} | {len(said)} | {_read(said)} |")
    lines += ["", "| statements without a model | count | read |", "|---|---|---|"]
    for language in languages():
        said = texts["statements"][language]
        lines.append(f"| {language} | {len(said)} | {_read(said) / len(said):.2f} |")
    return "\n".join(lines) + "\n"


def _read(said: Sequence[str]) -> int:
    return sum(bool(read_statements(text, _AT)) for text in said)
