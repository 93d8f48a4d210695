"""Threads in the memory service."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from groundwork.memory.v1 import memory_pb2 as pb
from groundwork.memory.v1 import memory_pb2_grpc as rpc

from kit.errors import Cancelled, DeadlineExceeded, Unavailable
from kit.rpc.channel import Channel
from services.orchestrator.adapters.codec import fill, read
from services.orchestrator.errors import MemorySilent
from services.orchestrator.log.events import Answer, Artefact, Citation, RunStatus
from services.orchestrator.models import QuizAnswer, RunRecord, StoredQuiz, Turn
from services.orchestrator.quizzes.showing import QUIZ

_CITED_BYTES = 128 * 1024
"""A message of the store holds a megabyte; an answer cites a handful of passages of a few kilobytes."""
_MADE_BYTES = 256 * 1024
"""Of what a run has made besides its text."""
_VERIFIED_BYTES = 128 * 1024
"""An answer makes a few dozen claims, each with its words and those that decide: some hundred bytes."""
_ANSWER_ID = re.compile(r"([0-9a-f]{32})-answer")
_STATUSES = {status.value: status for status in RunStatus}
_ROLES: dict[int, str] = {pb.ROLE_USER: "user", pb.ROLE_ASSISTANT: "assistant"}


def answering_run(message_id: str) -> str:
    """The run whose answer the message is; empty for other messages."""
    answer = _ANSWER_ID.fullmatch(message_id)
    return answer[1] if answer else ""


class MemoryThreads:
    """Memory over the memory service's contract."""

    def __init__(self, channel: Channel, *, timeout_s: float, write_timeout_s: float) -> None:
        self._stub = rpc.MemoryServiceStub(channel)
        self._timeout_s = timeout_s
        self._write_timeout_s = write_timeout_s

    async def history(self, thread_id: str, limit: int) -> Sequence[Turn]:
        request = pb.GetHistoryRequest(thread_id=thread_id, limit=limit)
        with _in_our_words():
            response = await self._stub.GetHistory(request, timeout=self._timeout_s)
        return tuple(
            Turn(_ROLES[message.role], message.text, message.run_id, _STATUSES.get(message.run_status))
            for message in response.messages
            # What was forgotten says nothing, and a role of a newer version means something that a prompt has no place for.
            if not message.forgotten and message.role in _ROLES
        )

    async def forget_answer(self, thread_id: str, run_id: str) -> None:
        request = pb.ForgetAnswerRequest(thread_id=thread_id, run_id=run_id)
        with _in_our_words():
            await self._stub.ForgetAnswer(request, timeout=self._timeout_s)

    async def quiz(self, thread_id: str, run_id: str) -> StoredQuiz:
        request = pb.GetArtefactRequest(thread_id=thread_id, run_id=run_id, artefact_id=QUIZ)
        with _in_our_words():
            response = await self._stub.GetArtefact(request, timeout=self._timeout_s)
        return _stored_quiz(response.artefact)

    async def record_answers(self, thread_id: str, run_id: str, answers: Sequence[QuizAnswer]) -> StoredQuiz:
        messages = [
            pb.QuestionAnswer(
                question_id=each.question_id, given=each.given, is_right=each.is_right, graded_by=each.graded_by
            )
            for each in answers
        ]
        request = pb.RecordAnswersRequest(thread_id=thread_id, run_id=run_id, artefact_id=QUIZ, answers=messages)
        with _in_our_words():
            response = await self._stub.RecordAnswers(request, timeout=self._write_timeout_s)
        return _stored_quiz(response.artefact)

    async def remember(self, record: RunRecord, answer: Answer, status: RunStatus) -> None:
        # The ids follow from the run, so that a run that is finished twice is remembered once.
        run_id, request = record.key.run_id, record.request
        asked = pb.Message(message_id=f"{run_id}-question", role=pb.ROLE_USER, text=request.question, run_id=run_id)
        asked.at.FromDatetime(record.created_at)
        answered = pb.Message(
            message_id=f"{run_id}-answer",
            role=pb.ROLE_ASSISTANT,
            text=answer.text,
            run_id=run_id,
            citations=_citations(answer.citations),
            support_status=answer.support_status.value if answer.support_status else "",
            method=answer.method,
            answer_confidence=answer.answer_confidence,
            answer_status=answer.answer_status.value if answer.answer_status else "",
            run_status=status.value,
            artefacts=_artefacts(answer.artefacts),
        )
        _fill_verification(answered, answer)
        turn = pb.AppendMessagesRequest(thread_id=request.thread_id, messages=[asked, answered])
        with _in_our_words():
            await self._stub.AppendMessages(turn, timeout=self._write_timeout_s)


def _citations(citations: Sequence[Citation]) -> list[pb.MessageCitation]:
    """As the memory service keeps them. Passages that do not fit any more go without their text: their document has it."""
    messages: list[pb.MessageCitation] = []
    room = _CITED_BYTES
    for citation in citations:
        message = pb.MessageCitation()
        fill(message, citation)
        if message.ByteSize() > room:
            message.ClearField("text")
            del message.bounding_boxes[:]
        room -= message.ByteSize()
        messages.append(message)
    return messages


def _artefacts(artefacts: Sequence[Artefact]) -> list[pb.MessageArtefact]:
    """As the memory service keeps them. What does not fit any more goes without body and citations: the run has them."""
    messages: list[pb.MessageArtefact] = []
    room = _MADE_BYTES
    for artefact in artefacts:
        message = pb.MessageArtefact()
        fill(message, artefact)
        if message.ByteSize() > room:
            named = pb.MessageArtefact(artefact_id=artefact.artefact_id, kind=artefact.kind, title=artefact.title)
            message = named
        room -= message.ByteSize()
        messages.append(message)
    return messages


def _stored_quiz(message: pb.MessageArtefact) -> StoredQuiz:
    answers = tuple(QuizAnswer(each.question_id, each.given, each.is_right, each.graded_by) for each in message.answers)
    return StoredQuiz(read(message, Artefact), answers)


def _fill_verification(message: pb.Message, answer: Answer) -> None:
    """With the verdicts on the claims. An answer so long that they do not fit is kept without the words that decide."""
    if answer.verification is None:
        return
    fill(message.verification, answer.verification)
    if message.verification.ByteSize() > _VERIFIED_BYTES:
        for sentence in message.verification.sentences:
            sentence.ClearField("span")
    if message.verification.ByteSize() > _VERIFIED_BYTES:
        message.ClearField("verification")


@contextmanager
def _in_our_words() -> Iterator[None]:
    """A user reads the message: gRPC's own names addresses and frames."""
    try:
        yield
    except (Unavailable, DeadlineExceeded, Cancelled) as error:  # Cancelled is what a stopping server says
        raise MemorySilent("the memory service does not answer now") from error
