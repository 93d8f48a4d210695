"""The memory service as a process would run it: real gRPC, real NATS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from groundwork.memory.v1 import memory_pb2 as pb
from groundwork.memory.v1 import memory_pb2_grpc
from groundwork.orchestrator.v1 import orchestrator_pb2 as run_pb
from groundwork.retriever.v1 import retriever_pb2, retriever_pb2_grpc

from kit.access.principal import Principal
from kit.errors import AlreadyExists, InvalidArgument, NotFound
from kit.jetstream import Job, Nats
from kit.rpc.server import make_server
from kit.stores.forgetting import ForgetQueue, ForgetRequest, Source, decode
from kit.testing.harness import free_port, make_signer, make_verifier, open_test_channel, running_service
from kit.testing.nats import NatsServer
from services.memory.app import run
from services.memory.settings import MemorySettings

SERVICES = [pb.DESCRIPTOR.services_by_name["MemoryService"]]


class FakeIndex(retriever_pb2_grpc.RetrieverServiceServicer):
    """Takes what is put in, and finds nothing."""

    async def PutMemories(self, request: Any, context: Any) -> retriever_pb2.PutMemoriesResponse:
        return retriever_pb2.PutMemoriesResponse()

    async def RemoveMemories(self, request: Any, context: Any) -> retriever_pb2.RemoveMemoriesResponse:
        return retriever_pb2.RemoveMemoriesResponse()


@pytest.fixture
async def address(nats_url: str) -> AsyncIterator[str]:
    server = make_server(make_verifier())
    retriever_pb2_grpc.add_RetrieverServiceServicer_to_server(FakeIndex(), server)
    retriever = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    settings = MemorySettings(grpc_address=f"127.0.0.1:{free_port()}", nats_url=nats_url, retriever_address=retriever)
    try:
        async with running_service(run, settings) as address:
            yield address
    finally:
        await server.stop(None)


async def test_a_conversation_is_kept_and_survives_a_killed_store(address: str, nats: NatsServer) -> None:
    async with open_test_channel(address, services=SERVICES) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        thread = (await stub.CreateThread(pb.CreateThreadRequest(), timeout=60)).thread
        messages = [
            pb.Message(message_id="q1", role=pb.ROLE_USER, text="How much leave?", run_id="r1"),
            pb.Message(message_id="a1", role=pb.ROLE_ASSISTANT, text="30 days [1]", run_id="r1"),
        ]
        request = pb.AppendMessagesRequest(thread_id=thread.thread_id, messages=messages)
        head = (await stub.AppendMessages(request, timeout=60)).thread
        assert (head.title, head.message_count) == ("How much leave?", 2)
        await nats.stop(kill=True)
        await nats.start()
        history = await stub.GetHistory(pb.GetHistoryRequest(thread_id=thread.thread_id), timeout=60)
        assert [(message.message_id, message.role, message.text) for message in history.messages] == [
            ("q1", pb.ROLE_USER, "How much leave?"),
            ("a1", pb.ROLE_ASSISTANT, "30 days [1]"),
        ]
        assert history.messages[0].at.seconds > 0


async def test_thread_asked_for_twice_with_one_key_is_made_once(address: str) -> None:
    async with open_test_channel(address, services=SERVICES) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        request = pb.CreateThreadRequest(title="mine", idempotency_key="k1")
        first, again = [(await stub.CreateThread(request, timeout=60)).thread for _ in range(2)]
        assert first == again
        with pytest.raises(AlreadyExists) as told:
            await stub.CreateThread(pb.CreateThreadRequest(title="other", idempotency_key="k1"), timeout=60)
        assert told.value.reason == "IDEMPOTENCY_KEY_REUSED"
        await stub.DeleteThread(pb.DeleteThreadRequest(thread_id=first.thread_id), timeout=60)
        with pytest.raises(NotFound):
            await stub.CreateThread(request, timeout=60)


async def test_citations_of_a_message_come_back_as_they_were_sent(address: str) -> None:
    async with open_test_channel(address, services=SERVICES) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        citation = pb.MessageCitation(
            number=1, document_id="d1", page=3, text="quoted", quote_end=6, heading_path=["A", "B"]
        )
        citation.bounding_boxes.add(page=3, x0=0.5, y1=9.25)
        answer = pb.Message(
            message_id="a1",
            role=pb.ROLE_ASSISTANT,
            text="30 [1]",
            citations=[citation],
            support_status="supported",
            method="extractive",
            answer_confidence=0.9,
            answer_status="likely",
        )
        answer.verification.support_status = run_pb.SUPPORT_STATUS_PARTIAL
        answer.verification.sentences.add(sentence="It takes 30 days.", verdict="contradicted", citations=[1], end=17)
        thread_id = await _thread_of(stub, answer)
        history = await stub.GetHistory(pb.GetHistoryRequest(thread_id=thread_id), timeout=60)
        assert list(history.messages[0].citations) == [citation]
        assert history.messages[0].verification == answer.verification
        said = history.messages[0]
        assert (said.support_status, said.method, said.answer_status) == ("supported", "extractive", "likely")
        assert said.answer_confidence == 0.9


async def test_another_subject_is_told_not_found(address: str) -> None:
    async with open_test_channel(address, services=SERVICES) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        thread = (await stub.CreateThread(pb.CreateThreadRequest(title="mine"), timeout=60)).thread
        assert len(thread.thread_id) == 12
    async with open_test_channel(address, Principal("local", "other"), SERVICES) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        with pytest.raises(NotFound) as caught:
            await stub.GetThread(pb.GetThreadRequest(thread_id=thread.thread_id), timeout=60)
        assert caught.value.reason == "THREAD_NOT_FOUND"
        assert (await stub.ListThreads(pb.ListThreadsRequest(), timeout=60)).threads == []


async def test_a_message_without_a_role_is_refused_and_nothing_is_stored(address: str) -> None:
    async with open_test_channel(address, services=SERVICES) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        thread = (await stub.CreateThread(pb.CreateThreadRequest(), timeout=60)).thread
        messages = [pb.Message(message_id="a", role=pb.ROLE_USER, text="x"), pb.Message(message_id="b", text="y")]
        request = pb.AppendMessagesRequest(thread_id=thread.thread_id, messages=messages)
        with pytest.raises(InvalidArgument, match="message 2 has no role"):
            await stub.AppendMessages(request, timeout=60)
        assert (
            await stub.GetThread(pb.GetThreadRequest(thread_id=thread.thread_id), timeout=60)
        ).thread.message_count == 0


async def _thread_of(stub: Any, message: pb.Message) -> str:
    thread_id = (await stub.CreateThread(pb.CreateThreadRequest(), timeout=60)).thread.thread_id
    request = pb.AppendMessagesRequest(thread_id=thread_id, messages=[message])
    await stub.AppendMessages(request, timeout=60)
    return str(thread_id)


async def test_deletion_goes_through_the_queue_and_has_the_runs_forgotten(address: str, jetstream: Nats) -> None:
    async with open_test_channel(address, services=SERVICES) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        message = pb.Message(message_id="q1", role=pb.ROLE_USER, text="How much leave?", run_id="r1")
        thread_id = await _thread_of(stub, message)
        await stub.DeleteThread(pb.DeleteThreadRequest(thread_id=thread_id), timeout=60)
    asked: asyncio.Future[tuple[Principal, ForgetRequest]] = asyncio.get_running_loop().create_future()

    async def note(job: Job) -> None:
        asked.set_result((job.principal, decode(job)))

    queue = await ForgetQueue.open(jetstream, make_signer(), make_verifier())
    consumer = asyncio.create_task(queue.queue.consume(note, concurrency=1))
    async with asyncio.timeout(60):
        principal, forget = await asked
    assert forget.source == Source.thread(principal.subject, thread_id)
    consumer.cancel()
    await asyncio.gather(consumer, return_exceptions=True)


async def test_forgotten_answer_is_told_as_such(address: str) -> None:
    async with open_test_channel(address, services=SERVICES) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        answer = pb.Message(message_id="a1", role=pb.ROLE_ASSISTANT, text="30 days [1]", run_id="r1")
        thread_id = await _thread_of(stub, answer)
        await stub.ForgetAnswer(pb.ForgetAnswerRequest(thread_id=thread_id, run_id="r1"), timeout=60)
        history = await stub.GetHistory(pb.GetHistoryRequest(thread_id=thread_id), timeout=60)
        (message,) = history.messages
        assert message.forgotten
        assert "30 days" not in message.text


async def test_a_renamed_and_a_deleted_thread(address: str) -> None:
    async with open_test_channel(address, services=SERVICES) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        thread_id = (await stub.CreateThread(pb.CreateThreadRequest(), timeout=60)).thread.thread_id
        await stub.RenameThread(pb.RenameThreadRequest(thread_id=thread_id, title="Leave"), timeout=60)
        assert [thread.title for thread in (await stub.ListThreads(pb.ListThreadsRequest(), timeout=60)).threads] == [
            "Leave"
        ]
        for _ in range(2):
            await stub.DeleteThread(pb.DeleteThreadRequest(thread_id=thread_id), timeout=60)
        with pytest.raises(NotFound):
            await stub.GetHistory(pb.GetHistoryRequest(thread_id=thread_id), timeout=60)


async def test_answers_stay_with_their_quiz_until_it_is_forgotten(address: str) -> None:
    async with open_test_channel(address, services=SERVICES) as channel:
        stub = memory_pb2_grpc.MemoryServiceStub(channel)
        thread_id = (await stub.CreateThread(pb.CreateThreadRequest(), timeout=60)).thread.thread_id
        quiz = pb.MessageArtefact(
            artefact_id="quiz", kind="quiz", title="Quiz", answers=[pb.QuestionAnswer(question_id="q9")]
        )
        quiz.body.update({"questions": [{"id": "q1"}]})
        message = pb.Message(message_id="a1", role=pb.ROLE_ASSISTANT, text="1. When?", run_id="r1", artefacts=[quiz])
        await stub.AppendMessages(pb.AppendMessagesRequest(thread_id=thread_id, messages=[message]), timeout=60)

        def answers(*given: tuple[str, str]) -> pb.RecordAnswersRequest:
            graded = [pb.QuestionAnswer(question_id=name, given=words, graded_by="words") for name, words in given]
            return pb.RecordAnswersRequest(thread_id=thread_id, run_id="r1", artefact_id="quiz", answers=graded)

        await asyncio.gather(*(stub.RecordAnswers(answers((f"q{n}", str(n))), timeout=60) for n in range(4)))
        await stub.RecordAnswers(answers(("q1", "again")), timeout=60)
        asked = pb.GetArtefactRequest(thread_id=thread_id, run_id="r1", artefact_id="quiz")
        found = (await stub.GetArtefact(asked, timeout=60)).artefact
        assert {each.question_id: each.given for each in found.answers} == {
            "q0": "0",
            "q1": "again",
            "q2": "2",
            "q3": "3",
        }
        history = await stub.GetHistory(pb.GetHistoryRequest(thread_id=thread_id), timeout=60)
        assert len(history.messages[0].artefacts[0].answers) == 4
        await stub.ForgetAnswer(pb.ForgetAnswerRequest(thread_id=thread_id, run_id="r1"), timeout=60)
        for call, request in ((stub.GetArtefact, asked), (stub.RecordAnswers, answers(("q1", "late")))):
            with pytest.raises(NotFound) as told:
                await call(request, timeout=60)
            assert told.value.reason == "ARTEFACT_NOT_FOUND"
