"""The rules that read first-person statements: they find most of what people say of themselves, and next to nothing elsewhere."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.memory.facts.statements import languages, read_statements

SET = json.loads((Path(__file__).parents[2] / "data" / "memory" / "statements.json").read_text("utf-8"))
AT = datetime(2026, 11, 27, 9, tzinfo=UTC)
FACTS_MAX = 2
RECALL_MIN = 0.8


def test_small_talk_and_one_off_questions_state_nothing() -> None:
    said = [*SET["small_talk"], *SET["one_off"]]
    found = [text for text in said if read_statements(text, AT)]
    assert len(found) <= FACTS_MAX, found


@pytest.mark.parametrize("language", languages())
def test_most_statements_are_read(language: str) -> None:
    said = SET["statements"][language]
    missed = [text for text in said if not read_statements(text, AT)]
    assert len(missed) <= (1 - RECALL_MIN) * len(said), missed
