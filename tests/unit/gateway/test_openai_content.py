"""What a client of OpenAI's API is told of a run that waits: what was answered by then is not kept from it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.gateway.models import RunEvent
from services.gateway.openai.content import Streamed, content_of

ANSWER = "It was built in 1889. [1]"
BLOCK = {"year": 1889}
WAITS = "This needs a decision before it goes on: see GET /v1/runs/r."


def events(answer: dict[str, Any] | None) -> list[RunEvent]:
    answered = [] if answer is None else [("token", {"text": ANSWER, "offset": 0}), ("answer", answer)]
    kinds = [("run", {}), *answered, ("parked", {"steps": ["delivery/approval"]})]
    return [RunEvent("r", seq, kind, {"run_id": "r", **data}) for seq, (kind, data) in enumerate(kinds, start=1)]


@pytest.mark.parametrize(
    ("answer", "by_schema", "text"),
    [
        ({"text": ANSWER}, False, f"{ANSWER}\n\n{WAITS}"),
        ({"text": ANSWER, "block": BLOCK}, True, '{"year": 1889}'),
        (None, False, WAITS),
        (None, True, WAITS),
    ],
)
async def test_an_answer_that_an_email_waits_behind_is_told(
    answer: dict[str, Any] | None, by_schema: bool, text: str
) -> None:
    async def rest() -> AsyncIterator[RunEvent]:
        for event in later:
            yield event

    first, *later = events(answer)
    streamed = Streamed(by_schema)
    sent = [each async for each in streamed.additions(first, rest())]
    assert "".join(sent) == text
    assert content_of(streamed.run, by_schema=by_schema).text == text
