"""The edges of the memory service, gRPC and the queue of deletions: decode, call, encode."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict
from groundwork.memory.v1 import memory_pb2 as pb
from groundwork.orchestrator.v1 import orchestrator_pb2

from kit.access.principal import current_principal
from kit.jetstream import Job
from kit.records import UNREADABLE, set_aside
from kit.stores.idempotency import Attempt, IdempotencyKeys
from services.memory.adapters.deletions import decode_deletion
from services.memory.errors import BadMessage
from services.memory.facts.facts import Facts
from services.memory.facts.handlers import FactServicer, owner_of_call, timestamp
from services.memory.facts.searching import MemorySearch
from services.memory.facts.turns import Turns
from services.memory.metrics import MESSAGES
from services.memory.models import Artefact, Message, Role, Thread, Verification
from services.memory.state import DELETIONS
from services.memory.threads import Threads

_UNKNOWN_COMES_BACK_AFTER_S = 600.0
_ROLES = {pb.ROLE_USER: Role.USER, pb.ROLE_ASSISTANT: Role.ASSISTANT}
_ROLE_NUMBERS = {Role.UNKNOWN: pb.ROLE_UNKNOWN, **{role: number for number, role in _ROLES.items()}}


class DeletionHandler:
    """The consumer of the queue of deletions."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def handle(self, job: Job) -> float | None:
        """Comes back after the seconds returned."""
        try:
            deletion = decode_deletion(job)
        except UNREADABLE as error:
            set_aside(DELETIONS.stream, job.job_id, error)
            return _UNKNOWN_COMES_BACK_AFTER_S  # a newer version's, perhaps
        return await self._threads.finish_deletion(deletion)


class MemoryServicer(FactServicer):
    """Threads of the caller, and what is remembered."""

    def __init__(
        self,
        threads: Threads,
        keys: IdempotencyKeys,
        facts: Facts,
        search: MemorySearch,
        turns: Turns,
        *,
        now: Callable[[], datetime],
    ) -> None:
        super().__init__(facts, search, turns)
        self._threads = threads
        self._keys = keys
        self._now = now

    async def CreateThread(self, request: pb.CreateThreadRequest, context: Any) -> pb.CreateThreadResponse:
        owner, title, key = owner_of_call(), request.title, request.idempotency_key
        if not key:
            return pb.CreateThreadResponse(thread=_encode_thread(await self._threads.create(owner, title)))

        async def make(attempt: Attempt) -> str:
            return (await self._threads.create(owner, title, attempt.item_id)).thread_id

        caller = current_principal()
        thread_id = await self._keys.once(caller, "thread", key, title.encode(), self._threads.new_id, make)
        return pb.CreateThreadResponse(thread=_encode_thread(await self._threads.get(owner, thread_id)))

    async def GetThread(self, request: pb.GetThreadRequest, context: Any) -> pb.GetThreadResponse:
        return pb.GetThreadResponse(thread=_encode_thread(await self._threads.get(owner_of_call(), request.thread_id)))

    async def ListThreads(self, request: pb.ListThreadsRequest, context: Any) -> pb.ListThreadsResponse:
        page = await self._threads.page(owner_of_call(), request.page.page_size, request.page.page_token)
        return pb.ListThreadsResponse(
            threads=[_encode_thread(thread) for thread in page.threads], next_page_token=page.next_page_token
        )

    async def RenameThread(self, request: pb.RenameThreadRequest, context: Any) -> pb.RenameThreadResponse:
        thread = await self._threads.rename(owner_of_call(), request.thread_id, request.title)
        return pb.RenameThreadResponse(thread=_encode_thread(thread))

    async def DeleteThread(self, request: pb.DeleteThreadRequest, context: Any) -> pb.DeleteThreadResponse:
        await self._threads.delete(owner_of_call(), request.thread_id)
        return pb.DeleteThreadResponse()

    async def AppendMessages(self, request: pb.AppendMessagesRequest, context: Any) -> pb.AppendMessagesResponse:
        messages = [self._decode_message(number, message) for number, message in enumerate(request.messages, start=1)]
        thread = await self._threads.append(owner_of_call(), request.thread_id, messages)
        for message in messages:
            MESSAGES.labels(message.role.value).inc()
        return pb.AppendMessagesResponse(thread=_encode_thread(thread))

    async def ForgetAnswer(self, request: pb.ForgetAnswerRequest, context: Any) -> pb.ForgetAnswerResponse:
        await self._threads.forget_answer(owner_of_call(), request.thread_id, request.run_id)
        return pb.ForgetAnswerResponse()

    async def GetHistory(self, request: pb.GetHistoryRequest, context: Any) -> pb.GetHistoryResponse:
        messages = await self._threads.history(owner_of_call(), request.thread_id, request.limit)
        return pb.GetHistoryResponse(messages=[_encode_message(message) for message in messages])

    async def GetArtefact(self, request: pb.GetArtefactRequest, context: Any) -> pb.GetArtefactResponse:
        artefact = await self._threads.artefact(owner_of_call(), request.thread_id, request.run_id, request.artefact_id)
        return pb.GetArtefactResponse(artefact=_encode_artefact(artefact))

    async def RecordAnswers(self, request: pb.RecordAnswersRequest, context: Any) -> pb.RecordAnswersResponse:
        for answer in request.answers:
            if not answer.HasField("at"):
                answer.at.FromDatetime(self._now())
        answers = [MessageToDict(each, preserving_proto_field_name=True) for each in request.answers]
        artefact = await self._threads.record_answers(
            owner_of_call(), request.thread_id, request.run_id, request.artefact_id, answers
        )
        return pb.RecordAnswersResponse(artefact=_encode_artefact(artefact))

    def _decode_message(self, number: int, message: pb.Message) -> Message:
        role = _ROLES.get(message.role)
        if role is None:
            raise BadMessage(f"message {number} has no role; set ROLE_USER or ROLE_ASSISTANT")
        at = message.at.ToDatetime(tzinfo=UTC) if message.HasField("at") else self._now()
        return Message(
            message.message_id,
            role,
            message.text,
            message.run_id,
            at,
            citations=tuple(_as_json(each) for each in message.citations),
            support_status=message.support_status,
            method=message.method,
            answer_confidence=message.answer_confidence if message.HasField("answer_confidence") else None,
            answer_status=message.answer_status,
            run_status=message.run_status,
            artefacts=tuple(_decode_artefact(each) for each in message.artefacts),
            verification=_as_json(message.verification) if message.HasField("verification") else None,
        )


def _as_json(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = MessageToDict(message, preserving_proto_field_name=True)
    return found


def _encode_thread(thread: Thread) -> pb.Thread:
    return pb.Thread(
        thread_id=thread.thread_id,
        title=thread.title,
        created_at=timestamp(thread.created_at),
        updated_at=timestamp(thread.updated_at),
        message_count=thread.message_count,
    )


def _encode_message(message: Message) -> pb.Message:
    return pb.Message(
        message_id=message.message_id,
        role=_ROLE_NUMBERS[message.role],
        text=message.text,
        run_id=message.run_id,
        at=timestamp(message.at),
        forgotten=message.forgotten,
        citations=[ParseDict(each, pb.MessageCitation(), ignore_unknown_fields=True) for each in message.citations],
        support_status=message.support_status,
        method=message.method,
        answer_confidence=message.answer_confidence,
        answer_status=message.answer_status,
        run_status=message.run_status,
        artefacts=[_encode_artefact(each) for each in message.artefacts],
        verification=_verification(message.verification),
    )


def _decode_artefact(artefact: pb.MessageArtefact) -> Artefact:
    """Without answers: those are recorded once they are graded."""
    found: Artefact = MessageToDict(artefact, preserving_proto_field_name=True)
    found.pop("answers", None)
    return found


def _encode_artefact(artefact: Artefact) -> pb.MessageArtefact:
    return ParseDict(artefact, pb.MessageArtefact(), ignore_unknown_fields=True)


def _verification(found: Verification | None) -> Any:
    return None if found is None else ParseDict(found, orchestrator_pb2.Verification(), ignore_unknown_fields=True)
