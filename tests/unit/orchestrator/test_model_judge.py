"""A language model as the judge of claims: what it is asked, and what is made of what it writes."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from kit.llm import Delta, Operation, Restart
from services.orchestrator.log.events import CheckedBy
from services.orchestrator.verification.judges import JudgedClaim, JudgedPassage, Judgement
from services.orchestrator.verification.model_judge import ModelJudge, VerdictsMissing
from tests.unit.orchestrator.fakes import FakeModel

PASSAGES = (
    JudgedPassage("The tower was built in 1889. It is 330 metres high.", "tower.txt", ("History",)),
    JudgedPassage("The bridge was opened in 1932.", "bridge.txt"),
)
CLAIMS = (JudgedClaim("The tower was built in 1889.", (0,)), JudgedClaim("The bridge was opened in 1931.", (1,)))


def item(statement: int, verdict: str, passage: int = 0, quote: str = "") -> str:
    return json.dumps({"statement": statement, "quote": quote, "passage": passage, "verdict": verdict})


def reply(*items: str) -> str:
    return '{"verdicts": [' + ", ".join(items) + "]}"


GOOD = reply(item(1, "supported", 1, "built in 1889"), item(2, "contradicted", 2, "opened in 1932"))


async def judged(
    pieces: Sequence[str | Delta], claims: Sequence[JudgedClaim] = CLAIMS, model: FakeModel | None = None
) -> dict[int, Judgement]:
    judge = ModelJudge(model or FakeModel(pieces, context_tokens=8192))
    return {position: each async for position, each in judge.judge("What about them?", claims, PASSAGES)}


async def read_into(found: dict[int, Judgement], text: str) -> None:
    async for position, each in ModelJudge(FakeModel([text], context_tokens=8192)).judge("", CLAIMS, PASSAGES):
        found[position] = each  # noqa: PERF403 - what came before an error is kept


@pytest.mark.parametrize("size", [1, 3, 1000])
async def test_verdicts_are_read_from_a_stream_cut_anywhere(size: int) -> None:
    said = await judged([GOOD[start : start + size] for start in range(0, len(GOOD), size)])
    assert [said[0].verdict, said[1].verdict] == ["supported", "contradicted"]
    assert PASSAGES[0].text[said[0].start : said[0].end] == "built in 1889"
    assert (said[1].passage, said[0].checked_by) == (1, CheckedBy("model/fake"))


async def test_first_verdict_is_there_before_the_reply_ends() -> None:
    class Slow(FakeModel):
        async def complete(self, request):  # type: ignore[no-untyped-def]
            async for delta in super().complete(request):
                yield delta
            await asyncio.Event().wait()

    judge = ModelJudge(Slow([GOOD[: GOOD.index(', {"statement": 2')]], context_tokens=8192))
    verdicts = judge.judge("", CLAIMS, PASSAGES)
    position, first = await anext(verdicts)
    assert (position, first.verdict) == (0, "supported")
    await verdicts.aclose()


async def test_model_is_asked_once_for_all_claims_as_the_operation_verify() -> None:
    model = FakeModel([GOOD], context_tokens=8192)
    await judged([], model=model)
    (request,) = model.requests
    assert request.operation is Operation.VERIFY
    assert request.schema is not None
    prompt = request.messages[-1].content
    for words in (
        "[1] (tower.txt; History)",
        "[2] (bridge.txt)",
        "1. The tower was",
        "2. The bridge was",
        "What about",
    ):
        assert words in prompt


async def test_fence_and_words_around_the_object_do_no_harm() -> None:
    said = await judged([f"Here it is:\n```json\n{GOOD}\n```\n"])
    assert len(said) == 2


@pytest.mark.parametrize(
    "text",
    [
        "I think all of them are right.",
        "{}",
        '{"verdicts": "all supported"}',
        reply(item(1, "sure")),
        reply('{"verdict": "supported"}'),
        reply(item(7, "supported", 1)),
        GOOD[:40],
    ],
)
async def test_what_follows_no_schema_judges_nothing(text: str) -> None:
    found: dict[int, Judgement] = {}
    with pytest.raises(VerdictsMissing):
        await read_into(found, text)
    assert found == {}


async def test_verdicts_before_a_missing_one_are_kept_and_the_lack_is_said() -> None:
    found: dict[int, Judgement] = {}
    with pytest.raises(VerdictsMissing, match="1 of 2"):
        await read_into(found, reply(item(1, "supported", 1)))
    assert list(found) == [0]


async def test_model_that_stands_in_for_another_begins_anew() -> None:
    said = await judged([GOOD[:30], Restart("p", "m", "LLM_TIMEOUT", "it fell silent"), GOOD])
    assert len(said) == 2


async def test_model_that_takes_too_long_is_left() -> None:
    class Silent(FakeModel):
        async def complete(self, request):  # type: ignore[no-untyped-def]
            await asyncio.Event().wait()
            yield

    with pytest.raises(VerdictsMissing, match="more than"):
        async for _ in ModelJudge(Silent([]), timeout_s=0.01).judge("", CLAIMS, PASSAGES):
            pass


async def test_action_is_left_to_the_effects_of_the_run() -> None:
    said = await judged([reply(item(1, "action"))], [JudgedClaim("Sent!", (0,))])
    assert said[0].is_action


async def test_model_whose_error_was_measured_says_so() -> None:
    figures = {"model/fake": CheckedBy("model/fake", measured=True, false_passed=0.03, true_failed=0.05, claims=210)}
    judge = ModelJudge(FakeModel([GOOD], context_tokens=8192), figures=figures)
    said = {position: each async for position, each in judge.judge("", CLAIMS, PASSAGES)}
    assert said[0].checked_by.measured


async def test_passages_that_have_no_room_are_left_out_from_behind() -> None:
    long = [JudgedPassage(f"Number {number}. " + "filler words " * 300, f"{number}.txt") for number in range(9)]
    model = FakeModel([reply(item(1, "supported", 9))], context_tokens=4096)
    judge = ModelJudge(model)
    said = {position: each async for position, each in judge.judge("", [JudgedClaim("Number 8.", (8,))], long)}
    assert said[0].passage == 8
    assert "[9] (8.txt)" in model.prompts[0][-1].content
