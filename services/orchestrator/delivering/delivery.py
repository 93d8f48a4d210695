"""The step of a run that follows its answer: the answer is mailed once a person has allowed it. It is a call of the tool
`send_email` like any other, approved, made once and audited; no model has a say in whom it reaches."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from kit.errors import GroundworkError
from services.orchestrator.answering.drafting import degraded
from services.orchestrator.delivering.mail import mail_of
from services.orchestrator.delivering.wishes import asks_for_mail, read_mail_wish
from services.orchestrator.errors import BudgetSpent, ReadOnlyRun
from services.orchestrator.log.events import Answer, Degradation, RunStatus, Thinking
from services.orchestrator.log.screen import Screen
from services.orchestrator.log.state import DELIVERY, TIME_UP
from services.orchestrator.models import RunRecord, Turn
from services.orchestrator.modes.mode import ModeServices
from services.orchestrator.steps.approvals import ApprovalRequest
from services.orchestrator.steps.run import Run, status_of

SEND_EMAIL = "send_email"
_APPROVAL = f"{DELIVERY}/approval"
_SENDING = f"{DELIVERY}/send"


@dataclass(frozen=True)
class Delivery:
    """What is to become of an answer, as it is recorded before the run answers."""

    question: str
    """What the run is to answer."""
    recipients: Sequence[str] = ()
    """Empty: it goes to nobody, and `problem` says why."""
    earlier_run_id: str = ""
    """The run whose answer is to be mailed, where the message asks for nothing else."""
    problem: Degradation | None = None

    def event(self) -> Thinking:
        """Tells of it."""
        if self.problem is not None:
            return Thinking(DELIVERY, self.problem.message, self.problem)
        if not self.recipients:
            return Thinking(DELIVERY, "The message names no address, so nothing is mailed.")
        return Thinking(DELIVERY, f"The answer is to be mailed to {', '.join(self.recipients)}. You are asked first.")

    def asked(self, record: RunRecord) -> RunRecord:
        """The run as its mode gets it: with the question alone."""
        return replace(record, request=replace(record.request, question=self.question))


class Deliveries:
    """Mails the answers of runs that ask for it."""

    def __init__(self, services: ModeServices) -> None:
        self._tools = services.tools
        self._threads = services.threads
        self._sources = services.sources
        self._library = services.library
        self._language_of = services.drafter.language_of
        self._approval_life_s = services.approval_life_s

    async def read(self, run: Run, record: RunRecord) -> Delivery | None:
        """What the message asks for; None where it asks for no e-mail."""
        begun = {*run.journal.progress.results, *run.journal.progress.intents} - {TIME_UP}
        # A run that another version began, which read the message in another way, goes on as it began.
        if DELIVERY not in begun and (begun or not asks_for_mail(record.request.question)):
            return None

        async def read() -> Delivery:
            history = await self._threads.history(run, record, for_model=False, says_failure=False)
            return _delivery(record.request.question, history)

        return await run.once(DELIVERY, read, Delivery, show=Delivery.event, is_last_resort=True)

    async def earlier_answer(self, run: Run, record: RunRecord, delivery: Delivery) -> Answer | None:
        """The answer that is to be mailed, shown once more; None where the run is to answer itself."""
        if not delivery.earlier_run_id:
            return None
        answer = await self._threads.answer_of(record, delivery.earlier_run_id)
        if answer is not None:
            await Screen(run.journal).settle(answer.text)
        return answer

    async def deliver(self, run: Run, record: RunRecord, delivery: Delivery, answer: Answer) -> None:
        """Mails the answer, if a person allows it. Why it was not mailed is said. Raises Parked while nobody has decided."""
        # A call of the caller's functions is no answer yet.
        if not delivery.recipients or answer.function_calls or _SENDING in run.journal.progress.results:
            return
        if status_of(answer) is RunStatus.REFUSED or not answer.text.strip():
            await run.say(_told("NOTHING_TO_SEND", "There is no answer to send, so no e-mail was sent."))
            return
        try:
            await self._deliver(run, record, delivery, answer)
        except (BudgetSpent, ReadOnlyRun) as error:
            await run.say(degraded(DELIVERY, "delivery", error, "No e-mail was sent."))

    async def _deliver(self, run: Run, record: RunRecord, delivery: Delivery, answer: Answer) -> None:
        problem = _told(
            "EMAIL_NOT_OFFERED",
            "No e-mail was sent: e-mail is not set up here, or not for you. An operator sets it up.",
        )
        try:
            tools = await self._tools.offered()
        except GroundworkError as error:
            tools, problem = (), degraded(DELIVERY, "tools", error, "No e-mail was sent. Ask again later.")
        tool = next((each for each in tools if each.is_named([SEND_EMAIL])), None)
        if tool is None:
            if not run.is_recorded(_SENDING):  # else the run's end says that nobody knows what came of the call
                await run.say(problem)
            return
        run.widen()
        if not run.is_recorded(_SENDING):
            run.budgets.require_time()
        # What was asked about is what is sent, though a new version would word it in another way.
        asked = run.journal.progress.approvals.get(_APPROVAL)
        arguments = (asked and asked.arguments) or mail_of(
            delivery.recipients, delivery.question, answer, await self._language_of(delivery.question)
        )
        expires_at = run.journal.now() + timedelta(seconds=self._approval_life_s)
        # The text comes from documents, which anybody may have written; the recipients come from the user.
        request = ApprovalRequest(tool.name, arguments, expires_at, is_tainted=True, tainted_arguments=("text",))
        decision = await run.ask(_APPROVAL, request)
        if not decision.allowed:
            message = "Nobody allowed the e-mail in time." if decision.expired else "A person refused the e-mail."
            await run.say(Thinking(DELIVERY, f"{message} It was not sent."))
            return
        if not run.is_recorded(_SENDING) and (withdrawn := await self._withdrawn(record)) is not None:
            await run.say(withdrawn)
            return
        call = self._tools.call(tool, arguments, record.request.collection_ids, run.tell_progress)
        await run.effect(_SENDING, call)

    async def _withdrawn(self, record: RunRecord) -> Thinking | None:
        """Why the answer must not be sent any more: while a person decided, the caller may have lost a document that it is made
        from. What cannot be checked is not sent."""
        try:
            documents = await self._sources.documents_of(record.key)
            unreadable = set(documents) - await self._library.readable(documents)
        except GroundworkError as error:
            return degraded(DELIVERY, "delivery", error, "No e-mail was sent. Ask again later.")
        if not unreadable:
            return None
        return _told(
            "ACCESS_WITHDRAWN",
            "No e-mail was sent: a document that the answer is made from is not yours to read any more, or was deleted.",
        )


def _delivery(message: str, history: Sequence[Turn]) -> Delivery:
    own = [turn.text for turn in history if turn.role == "user"]
    wish = read_mail_wish(message, own)
    if wish is None:
        return Delivery(message)
    if not wish.recipients:
        return Delivery(
            message, problem=_problem("NO_ADDRESS", "No e-mail is sent: name the address, such as anna@example.org.")
        )
    if wish.question:
        return Delivery(wish.question, wish.recipients)
    last = next((turn for turn in reversed(history) if turn.role == "assistant"), None)
    if last is None or not last.run_id:
        problem = "No e-mail is sent: there is no answer before this message. Say what the e-mail is to hold."
        return Delivery(message, problem=_problem("NOTHING_TO_SEND", problem))
    return Delivery(own[-1] if own else message, wish.recipients, last.run_id)


def _problem(reason: str, message: str) -> Degradation:
    return Degradation("delivery", reason, message)


def _told(reason: str, message: str) -> Thinking:
    return Thinking(DELIVERY, message, _problem(reason, message))
