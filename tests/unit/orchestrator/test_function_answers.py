"""Runs with functions of the caller's: what is judged of an answer, and how much a request may bring."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.answering.generation import Generator
from services.orchestrator.errors import InvalidRequest
from services.orchestrator.log.events import Answer, FunctionCall, Retrieval, RunMode, RunStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import Function, HistoryMessage, RunRecord, RunRequest
from services.orchestrator.runs.requests import check
from services.orchestrator.steps.usage import Metered
from tests.unit.orchestrator.cutting import AT, KEY, now
from tests.unit.orchestrator.fakes import EVIDENCE, FakeScorer, FakeSearcher, MemoryLog
from tests.unit.orchestrator.serving import document_modes, mode_services
from tests.unit.orchestrator.toolloop.scripting import ScriptedReplies

CALL = FunctionCall("c1", "height", '{"of": "tower"}')
CALLED = (HistoryMessage("assistant", "", (CALL,)), HistoryMessage("tool", "300 metres.", call_id="c1"))
ASKED = RunRequest(
    RunMode.GROUNDED,
    "When was the tower built, and how high is it?",
    ("default",),
    functions=(Function("height", "Tells it.", '{"type": "object"}'),),
    called=CALLED,
)
UNMARKED = "The tower was built in 1889. It is 300 metres high."


async def answered(request: RunRequest, evidence: Sequence[object] = EVIDENCE) -> Answer:
    model = Metered(ScriptedReplies([UNMARKED]))
    drafter = Drafter(FakeScorer(), Generator(model))
    searcher = FakeSearcher(Retrieval(tuple(evidence), strategy="hybrid"))  # type: ignore[arg-type]
    services = mode_services(drafter, model=model, searcher=searcher)
    log = MemoryLog()
    await document_modes(services).run(
        RunRecord(KEY, "ann", request, RunStatus.RUNNING, AT), await Journal.open(KEY, log, now)
    )
    (answer,) = [event.payload for event in log.events[KEY] if isinstance(event.payload, Answer)]
    return answer


@pytest.mark.parametrize("verify", ["", "mark", "remove"])
async def test_answer_without_marks_is_judged_where_passages_were_found(verify: str) -> None:
    answer = await answered(replace(ASKED, verify=verify))
    assert answer.verification is not None
    verdicts = [(each.sentence, each.verdict) for each in answer.verification.sentences]
    assert verdicts == [("The tower was built in 1889.", "similar_wording"), ("It is 300 metres high.", "not_found")]
    assert ("300" in answer.text) == (verify != "remove")


async def test_answer_without_marks_is_as_it_is_where_nothing_is_to_be_judged() -> None:
    for answer in (await answered(replace(ASKED, verify="off")), await answered(ASKED, ())):
        assert (answer.text, answer.verification) == (UNMARKED, None)


def test_size_counts_the_arguments_of_calls_in_bytes() -> None:
    modes = document_modes(mode_services())
    long = replace(CALL, arguments="€" * 140_000)
    for part in (replace(CALLED[0], calls=(long,)), replace(CALLED[0], text="€" * 140_000)):
        with pytest.raises(InvalidRequest, match="bytes; give at most 400000"):
            check(replace(ASKED, called=(part, CALLED[1])), modes)


def test_size_of_all_that_is_brought_is_limited() -> None:
    modes = document_modes(mode_services())
    functions = (Function("height", "€" * 99_000, "{}"),)
    called = (replace(CALLED[0], text="x" * 399_000), CALLED[1])
    check(replace(ASKED, functions=functions), modes)
    check(replace(ASKED, called=called), modes)
    with pytest.raises(InvalidRequest, match="bytes together; give at most 700000"):
        check(replace(ASKED, functions=functions, called=called, instructions="€" * 10_000), modes)


def test_schemas_of_all_functions_together_are_limited_since_each_takes_time_to_check() -> None:
    modes = document_modes(mode_services())
    many = json.dumps({"type": "object", "allOf": [{}] * 900})
    functions = [Function(f"f{number}", "", many) for number in range(5)]
    check(replace(ASKED, functions=functions[:4]), modes)
    with pytest.raises(InvalidRequest, match="more than 4000 schemas; give fewer functions"):
        check(replace(ASKED, functions=functions), modes)
