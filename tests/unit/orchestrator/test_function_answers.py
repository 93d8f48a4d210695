"""Runs with functions of the caller's: what is judged of an answer, and how much a request may bring."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.answering.generation import Generator
from services.orchestrator.errors import InvalidRequest
from services.orchestrator.log.events import Answer, Done, FunctionCall, Retrieval, RunMode, RunStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import Function, HistoryMessage, RunRecord, RunRequest
from services.orchestrator.runs.requests import check
from services.orchestrator.steps.usage import Metered
from tests.unit.orchestrator.chatting import RepeatedReplies
from tests.unit.orchestrator.cutting import (
    AT,
    KEY,
    DyingLog,
    Worker,
    cut_and_continued,
    cuts,
    now,
    shown_by,
    told,
    worked,
)
from tests.unit.orchestrator.fakes import EVIDENCE, FakeScorer, FakeSearcher, MemoryLog
from tests.unit.orchestrator.serving import document_modes, mode_services
from tests.unit.orchestrator.steps.test_cuts import without_tokens
from tests.unit.orchestrator.toolloop.scripting import ScriptedReplies, call, calls, said

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


async def work(journal: Journal, *, request: RunRequest, replies: ScriptedReplies, evidence: Sequence[object]) -> None:
    """One worker: everything of the process is new."""
    model = Metered(replies)
    drafter = Drafter(FakeScorer(), Generator(model))
    searcher = FakeSearcher(Retrieval(tuple(evidence), strategy="hybrid"))  # type: ignore[arg-type]
    services = mode_services(drafter, model=model, searcher=searcher)
    await document_modes(services).run(RunRecord(KEY, "ann", request, RunStatus.RUNNING, AT), journal)


async def answered(request: RunRequest, evidence: Sequence[object] = EVIDENCE) -> Answer:
    log = MemoryLog()
    replies = ScriptedReplies([UNMARKED])
    await work(await Journal.open(KEY, log, now), request=request, replies=replies, evidence=evidence)
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


WANTED = calls(call("height", CALL.arguments, call_id="c1"), call("height", '{"of": "bridge"}', 1, "c2"))
LOOP = {
    "calls": (replace(ASKED, called=()), [WANTED]),
    "words and calls": (replace(ASKED, called=()), [[*said("Let me look.")[:-1], *WANTED]]),
    "one at a time": (replace(ASKED, called=(), one_function_at_a_time=True), [WANTED]),
    "calls again": (ASKED, ["never", calls(call("height", '{"of": "bridge"}', call_id="c2"))]),
    "answers": (ASKED, ["never", "The tower was built in 1889. [1] It is 300 metres high."]),
    "answers aloud": (replace(ASKED, style="spoken", instructions="Be kind."), ["never", UNMARKED]),
}


@pytest.mark.parametrize(("request_", "replies"), LOOP.values(), ids=LOOP)
async def test_round_of_functions_that_is_cut_anywhere_ends_the_same(request_: RunRequest, replies: list[Any]) -> None:
    def worker() -> Worker:
        return partial(work, request=request_, replies=RepeatedReplies(replies), evidence=EVIDENCE)

    whole = list(await worked(DyingLog(), worker()))
    assert isinstance(whole[-1].payload, Done)
    (answer,) = [each.payload for each in whole if isinstance(each.payload, Answer)]
    assert bool(answer.function_calls) == (len(replies) == 1 or not isinstance(replies[-1], str))
    for cut in cuts(whole):
        events = await cut_and_continued(DyingLog(), [worker(), worker()], cut)
        assert without_tokens(told(events)) == without_tokens(told(whole)), str(cut)
        assert shown_by(events) == shown_by(whole), str(cut)


async def test_model_with_functions_is_told_that_its_answer_is_read_aloud_and_what_the_application_adds() -> None:
    replies = ScriptedReplies([UNMARKED])
    request = replace(ASKED, style="spoken", instructions="Be kind.")
    await work(await Journal.open(KEY, MemoryLog(), now), request=request, replies=replies, evidence=EVIDENCE)
    system = replies.requests[0].messages[0].content
    assert "read aloud" in system
    assert system.index("read aloud") < system.index("Be kind.")


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
