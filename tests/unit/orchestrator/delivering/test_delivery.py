"""An answer that is to be mailed: the answer first, then one call that a person has allowed, whichever worker goes on."""

from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from services.orchestrator.delivering import delivery
from services.orchestrator.delivering.delivery import Deliveries, Delivery
from services.orchestrator.delivering.mail import SUBJECT_CHARACTERS_MAX, TEXT_CHARACTERS_MAX, mail_of
from services.orchestrator.errors import Parked
from services.orchestrator.log.events import (
    Answer,
    Approval,
    ApprovalDecision,
    Artefact,
    Citation,
    Done,
    EffectClass,
    FunctionCall,
    RunEvent,
    RunMode,
    RunStarted,
    RunStatus,
    StepState,
    SupportStatus,
    Thinking,
    ToolCall,
    ToolResult,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import Outcome, RunKey, RunRecord, RunRequest, Tool, Turn
from services.orchestrator.modes.threads import Threads
from services.orchestrator.steps.run import Run
from services.tools.toolbox.network import send_email
from tests.unit.orchestrator.cutting import AT, KEY, Cut, DyingLog, cuts, now, told, worked
from tests.unit.orchestrator.fakes import FakeLibrary, FakeMemory, FakeSources, FakeTools
from tests.unit.orchestrator.serving import document_modes, mode_services

MAIL = Tool("send_email", "Sends.", {"type": "object"}, EffectClass.ONCE, needs_approval=True)
ASKED = "When was the tower built? Then mail it to anna@example.org."
CITED = Citation(1, "d1", "tower.txt", "c1", 0, "The tower is high.", 0, 18)
EARLIER = Answer("The tower has three floors. [1]", (), SupportStatus.SUPPORTED, "model")


class Readers(FakeLibrary):
    """Documents that the caller may read until they are withdrawn."""

    is_withdrawn = False

    async def readable(self, document_ids: Sequence[str]) -> Set[str]:
        return set() if self.is_withdrawn else set(document_ids)


class Office:
    """A run of mode grounded, and the person who decides about its e-mail."""

    def __init__(
        self, message: str = ASKED, *, tools: tuple[Tool, ...] = (MAIL,), turns: tuple[Turn, ...] = ()
    ) -> None:
        self.tools = FakeTools(tools)
        self.memory = FakeMemory(turns)
        self.log = DyingLog()
        self.sources, self.library = FakeSources(), Readers()
        request = RunRequest(RunMode.GROUNDED, message, ("default",), thread_id="t", agent="reasoning")
        self.record = RunRecord(KEY, "ann", request, RunStatus.RUNNING, AT)

    async def work(self, cut: Any = None) -> list[RunEvent]:
        async def worker(journal: Journal) -> None:
            threads = Threads(self.memory, self.sources, turns=8, runs=self._earlier)
            made = mode_services(tools=self.tools, sources=self.sources, library=self.library)
            services = replace(made, threads=threads)
            with suppress(Parked):
                await document_modes(services).run(self.record, journal)

        return list(await worked(self.log, worker, cut))

    async def decide(self, *, allowed: bool) -> None:
        journal = await Journal.open(KEY, self.log, now)
        ((step, asked),) = journal.progress.approvals.items()
        if asked.decision is ApprovalDecision.PENDING:
            decision = ApprovalDecision.ALLOWED if allowed else ApprovalDecision.DENIED
            await journal.record(step, replace(asked, decision=decision, decided_by="ann"), StepState())

    async def _earlier(self, key: RunKey) -> RunRecord | None:
        return replace(self.record, key=key, status=RunStatus.COMPLETED, outcome=Outcome(EARLIER, None, None))


def only(events: list[RunEvent], kind: type) -> list[Any]:
    return [event.payload for event in events if isinstance(event.payload, kind)]


def reasons(events: list[RunEvent]) -> list[str]:
    return [each.degraded.reason for each in only(events, Thinking) if each.degraded]


async def test_the_answer_comes_first_and_is_mailed_when_a_person_allows_it() -> None:
    office = Office()
    waiting = await office.work()
    (answer,) = only(waiting, Answer)
    (asked,) = only(waiting, Approval)
    assert not only(waiting, Done)
    assert office.tools.made == []
    assert asked.tool == "send_email"
    assert asked.arguments["to"] == ["anna@example.org"]
    assert asked.arguments["subject"] == "When was the tower built?"
    assert answer.text in asked.arguments["text"]
    assert "[1] tower.txt" in asked.arguments["text"]
    assert (asked.is_tainted, asked.tainted_arguments) == (True, ("text",))
    await office.decide(allowed=True)
    events = await office.work()
    assert office.tools.made == [("send_email", asked.arguments)]
    assert [(each.step, each.payload.ok) for each in events if isinstance(each.payload, ToolResult)] == [
        ("delivery/send", True)
    ]
    assert only(events, Done)[0].status is RunStatus.COMPLETED


async def test_its_thread_has_the_answer_while_the_email_waits() -> None:
    office = Office()
    (answer,) = only(await office.work(), Answer)
    assert office.memory.remembered == [("t", KEY.run_id, ASKED, answer.text)]
    await office.decide(allowed=False)
    await office.work()
    assert set(office.memory.remembered) == {("t", KEY.run_id, ASKED, answer.text)}


async def test_what_was_allowed_is_what_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    office = Office()
    (asked,) = only(await office.work(), Approval)
    await office.decide(allowed=True)
    monkeypatch.setattr(delivery, "mail_of", lambda *_: {"to": ["eve@example.org"], "subject": "", "text": ""})
    assert only(await office.work(), Done)[0].status is RunStatus.COMPLETED
    assert office.tools.made == [("send_email", asked.arguments)]


@pytest.mark.parametrize("sent", [False, True])
async def test_what_may_have_been_sent_is_not_said_to_be_unsent(*, sent: bool) -> None:
    office = Office()
    await office.work()
    await office.decide(allowed=True)
    call = (await office.work(Cut(len(office.log.events[KEY]) + 2, stored=True)))[-1]
    assert isinstance(call.payload, ToolCall)
    if sent:
        await office.work(Cut(call.seq + 2, stored=True))
    made = len(office.tools.made)
    office.tools.tools.clear()
    events = await office.work()
    assert reasons(events) == []
    assert [each.ok for each in only(events, ToolResult)] == [sent]
    assert (len(office.tools.made), only(events, Done)[0].status) == (made, RunStatus.COMPLETED)


async def test_a_run_that_another_version_began_goes_on_as_it_began() -> None:
    office = Office("When was the tower built?")
    await office.work()
    office.record = Office().record
    del office.log.events[KEY][-1]  # its end
    events = await office.work()
    assert not only(events, Approval)
    assert only(events, Done)


async def test_the_answer_of_the_run_before_is_mailed() -> None:
    office = Office("Mail that to anna@example.org")
    request = replace(office.record.request, thread_id="", previous_run_id="b" * 32)
    office.record = replace(office.record, request=request)
    (asked,) = only(await office.work(), Approval)
    assert asked.arguments["text"] == EARLIER.text


async def test_it_is_mailed_once_wherever_a_worker_dies() -> None:
    async def ended(early: Any, late: Any) -> tuple[Office, list[RunEvent]]:
        office = Office()
        await office.work(early)
        await office.work()
        await office.decide(allowed=True)
        await office.work(late)
        return office, await office.work()

    _, whole = await ended(None, None)
    # Runs that die before their answer are cut elsewhere, at every point.
    answered_at, asked_at = (
        next(event.seq for event in whole if isinstance(event.payload, kind)) for kind in (Answer, Approval)
    )
    for cut in cuts([event for event in whole if event.seq >= answered_at]):
        office, events = await ended(*((cut, None) if cut.seq <= asked_at else (None, cut)))
        assert told(events) == told(whole), cut
        assert len(office.tools.made) == 1, cut


async def test_what_a_person_refuses_is_not_mailed_and_the_answer_stays() -> None:
    office = Office()
    await office.work()
    await office.decide(allowed=False)
    events = await office.work()
    assert office.tools.made == []
    assert any("refused" in each.text for each in only(events, Thinking))
    assert only(events, Done)[0].status is RunStatus.COMPLETED


@pytest.mark.parametrize(
    ("message", "tools", "reason"),
    [
        (ASKED, (), "EMAIL_NOT_OFFERED"),
        ("When was the tower built? Mail it to Anna.", (MAIL,), "NO_ADDRESS"),
        ("Mail it to anna@example.org", (MAIL,), "NOTHING_TO_SEND"),
    ],
)
async def test_what_cannot_be_mailed_is_answered_and_said(message: str, tools: tuple[Tool, ...], reason: str) -> None:
    office = Office(message, tools=tools)
    events = await office.work()
    assert only(events, Answer)
    assert only(events, Done)
    assert reasons(events) == [reason]
    assert not only(events, Approval)


async def test_the_answer_before_is_mailed_where_nothing_else_is_asked() -> None:
    turns = (Turn("user", "How many floors has it?"), Turn("assistant", EARLIER.text, "b" * 32))
    office = Office("Mail that to anna@example.org, please", turns=turns)
    events = await office.work()
    assert only(events, Answer) == [EARLIER]
    (asked,) = only(events, Approval)
    assert (asked.arguments["subject"], asked.arguments["text"]) == ("How many floors has it?", EARLIER.text)


async def test_nothing_is_sent_once_a_document_of_the_answer_may_not_be_read() -> None:
    office = Office()
    await office.work()
    await office.decide(allowed=True)
    office.library.is_withdrawn = True
    events = await office.work()
    assert office.tools.made == []
    assert reasons(events) == ["ACCESS_WITHDRAWN"]
    assert only(events, Done)


@pytest.mark.parametrize(
    ("language", "label"), [("en", "Sources"), ("de", "Quellen"), ("he", "מקורות"), ("xx", "Sources")]
)
def test_labels_are_in_the_language_of_the_question(language: str, label: str) -> None:
    cited = Answer("So. [1]", (CITED,), None, "model")
    text = mail_of(["a@example.org"], "What?", cited, language)["text"]
    assert text.partition("\n\n")[2].startswith(f"{label}:\n[1] ")


async def test_an_address_in_an_answer_is_nobody_that_is_written_to() -> None:
    turns = (Turn("user", "Who is Anna?"), Turn("assistant", "Write to anna@evil.example.", "b" * 32))
    events = await Office("When was the tower built? Mail it to Anna.", turns=turns).work()
    assert reasons(events) == ["NO_ADDRESS"]


async def test_a_call_of_the_callers_functions_is_no_answer_to_mail() -> None:
    office = Office()
    run = await Run.begin(await Journal.open(KEY, office.log, now), RunStarted(RunMode.GROUNDED, ASKED))
    deliveries = Deliveries(mode_services(tools=office.tools, memory=office.memory))
    calls = (FunctionCall("c1", "look_up", "{}"),)
    answer = Answer("Let me look it up.", (), None, "model", function_calls=calls)
    await deliveries.deliver(run, office.record, Delivery(ASKED, ["anna@example.org"]), answer)
    assert run.journal.progress.approvals == {}


def test_a_long_answer_fits_into_what_the_tool_takes() -> None:
    made = Artefact("a", "outline", "Outline", None, outline="one\ntwo")
    short = mail_of(["a@example.org"], "What?\nNow", Answer("So.", (), None, "model", artefacts=(made,)))
    assert (short["subject"], short["text"]) == ("What? Now", "So.\n\nOutline\n\none\ntwo")
    long = mail_of(["a@example.org"], "w" * 400, Answer("word\n" * 40_000, (), None, "model"))
    assert len(long["subject"]) <= SUBJECT_CHARACTERS_MAX <= send_email.SUBJECT_CHARACTERS_MAX
    assert len(long["text"]) <= TEXT_CHARACTERS_MAX <= send_email.TEXT_CHARACTERS_MAX
    assert long["text"].endswith("This is its beginning.]")
