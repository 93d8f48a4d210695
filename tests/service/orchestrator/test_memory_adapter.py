"""Threads in the memory service, as runs read and change them."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from groundwork.memory.v1 import memory_pb2 as pb
from groundwork.memory.v1 import memory_pb2_grpc as rpc

from kit.testing.harness import open_test_channel, running_servicer
from services.orchestrator.adapters.services.memory import MemoryThreads
from services.orchestrator.errors import MemorySilent
from services.orchestrator.log.events import (
    Answer,
    AnswerStatus,
    Citation,
    DecidingSpan,
    RunMode,
    RunStatus,
    SentenceVerdict,
    SupportStatus,
    Verification,
)
from services.orchestrator.models import RunKey, RunRecord, RunRequest, Turn


class Memory(rpc.MemoryServiceServicer):
    """Knows one thread, part of which a newer version wrote."""

    def __init__(self) -> None:
        self.forgotten: list[tuple[str, str]] = []
        self.appended: list[pb.AppendMessagesRequest] = []

    async def GetHistory(self, request: Any, context: Any) -> pb.GetHistoryResponse:
        messages = [
            pb.Message(role=pb.ROLE_USER, text="How long?", run_id="r1"),
            pb.Message(role=pb.ROLE_ASSISTANT, text="removed", run_id="r1", forgotten=True),
            pb.Message(role=pb.ROLE_UNKNOWN, text="a critic speaks"),
            pb.Message(role=99, text="somebody speaks"),  # type: ignore[arg-type]
            pb.Message(role=pb.ROLE_ASSISTANT, text="Two weeks.", run_id="r2"),
        ]
        return pb.GetHistoryResponse(messages=messages)

    async def AppendMessages(self, request: Any, context: Any) -> pb.AppendMessagesResponse:
        self.appended.append(request)
        return pb.AppendMessagesResponse()

    async def ForgetAnswer(self, request: Any, context: Any) -> pb.ForgetAnswerResponse:
        self.forgotten.append((request.thread_id, request.run_id))
        return pb.ForgetAnswerResponse()


async def test_history_is_what_users_and_assistants_say_and_is_not_forgotten() -> None:
    memory = Memory()
    async with (
        running_servicer(rpc.add_MemoryServiceServicer_to_server, memory) as address,
        open_test_channel(address) as channel,
    ):
        threads = MemoryThreads(channel, timeout_s=60.0, write_timeout_s=60.0)
        assert await threads.history("t1", 8) == (
            Turn("user", "How long?", "r1"),
            Turn("assistant", "Two weeks.", "r2"),
        )
        await threads.forget_answer("t1", "r1")
    assert memory.forgotten == [("t1", "r1")]


async def test_turn_is_remembered_with_its_citations_at_the_time_of_the_question() -> None:
    memory = Memory()
    asked_at = datetime(2026, 1, 1, tzinfo=UTC)
    request = RunRequest(RunMode.GROUNDED, "How long?", thread_id="t1")
    record = RunRecord(RunKey("acme", "r1"), "ann", request, RunStatus.RUNNING, asked_at)
    cited = [Citation(number, f"d{number}", "a.md", f"c{number}", 2, "x" * 60_000, 1, 5) for number in (1, 2, 3)]
    answer = Answer("Two weeks [1].", cited, SupportStatus.SUPPORTED, "model", None, 0.9, AnswerStatus.LIKELY)
    verdict = SentenceVerdict(
        "Two weeks.", "supported", (1,), 0.9, span=DecidingSpan("d1", "a.md", "c1", 1, 5, "x" * 4)
    )
    answer = replace(answer, verification=Verification((verdict,), 1.0, 1.0, SupportStatus.SUPPORTED))
    async with (
        running_servicer(rpc.add_MemoryServiceServicer_to_server, memory) as address,
        open_test_channel(address) as channel,
    ):
        await MemoryThreads(channel, timeout_s=60.0, write_timeout_s=60.0).remember(record, answer, RunStatus.COMPLETED)
    (appended,) = memory.appended
    question, said = appended.messages
    assert (appended.thread_id, question.text, said.text) == ("t1", "How long?", "Two weeks [1].")
    assert question.at.ToDatetime(tzinfo=UTC) == asked_at
    assert said.run_status == "completed"
    assert (said.support_status, said.method, said.answer_confidence, said.answer_status) == (
        "supported",
        "model",
        0.9,
        "likely",
    )
    assert [(each.number, each.document_id, each.page, each.quote_end) for each in said.citations] == [
        (1, "d1", 2, 5),
        (2, "d2", 2, 5),
        (3, "d3", 2, 5),
    ]
    assert [(each.verdict, each.span.text) for each in said.verification.sentences] == [("supported", "xxxx")]
    assert [bool(each.text) for each in said.citations] == [True, True, False]  # the third does not fit any more


class Slow(Memory):
    """Answers nothing until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.let = asyncio.Event()

    async def GetHistory(self, request: Any, context: Any) -> pb.GetHistoryResponse:
        await self.let.wait()
        return await super().GetHistory(request, context)

    async def AppendMessages(self, request: Any, context: Any) -> pb.AppendMessagesResponse:
        await self.let.wait()
        return await super().AppendMessages(request, context)


async def test_turn_is_waited_for_longer_than_the_history() -> None:
    memory = Slow()
    record = RunRecord(
        RunKey("acme", "r1"),
        "ann",
        RunRequest(RunMode.CHAT, "Hello", thread_id="t1"),
        RunStatus.RUNNING,
        datetime.now(UTC),
    )
    async with (
        running_servicer(rpc.add_MemoryServiceServicer_to_server, memory) as address,
        open_test_channel(address) as channel,
    ):
        threads = MemoryThreads(channel, timeout_s=0.05, write_timeout_s=60.0)
        remembered = asyncio.create_task(
            threads.remember(record, Answer("Hello.", [], SupportStatus.SUPPORTED, "model"), RunStatus.COMPLETED)
        )
        with pytest.raises(MemorySilent):
            await threads.history("t1", 8)
        memory.let.set()
        await remembered
    assert len(memory.appended) == 1
