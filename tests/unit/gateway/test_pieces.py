"""Answers as pieces to be said."""

from typing import Any

import pytest

from services.gateway.models import RunEvent
from services.gateway.voice.pieces import Pieces

EVIDENCE = [
    {"number": number, "document_id": f"d{number}", "document_name": "a.md", "chunk_id": f"c{number}", "page": None}
    for number in (1, 2)
]


def event(seq: int, kind: str, **data: Any) -> RunEvent:
    return RunEvent("r1", seq, kind, {"run_id": "r1", "seq": seq, "at": "", **data})


@pytest.mark.parametrize("step", [1, 3, 100])
def test_marks_behind_a_full_stop_are_of_the_sentence_before_them(step: int) -> None:
    text = "One thing. [1] Another thing. [1] [2] The last [2]."
    pieces = Pieces("en")
    found = pieces.add(event(1, "retrieval", evidence=EVIDENCE, degraded=[]))
    for start in range(0, len(text), step):
        found += pieces.add(event(2 + start, "token", text=text[start : start + step], offset=start))
    found += pieces.add(event(500, "answer", text=text, citations=EVIDENCE))
    cited = [
        (piece.spoken, [each["number"] for each in piece.citations]) for piece in found if piece.kind == "sentence"
    ]
    assert cited == [("One thing.", [1]), ("Another thing.", [1, 2]), ("The last.", [2])]
    assert pieces.ending()["withdrawn"] == []
