"""Threads in the memory service, as runs read and change them."""

from typing import Any

from groundwork.memory.v1 import memory_pb2 as pb
from groundwork.memory.v1 import memory_pb2_grpc as rpc

from kit.testing.harness import open_test_channel, running_servicer
from services.orchestrator.adapters.memory import MemoryThreads
from services.orchestrator.models import Turn


class Memory(rpc.MemoryServiceServicer):
    """Knows one thread, part of which a newer version wrote."""

    def __init__(self) -> None:
        self.forgotten: list[tuple[str, str]] = []

    async def GetHistory(self, request: Any, context: Any) -> pb.GetHistoryResponse:
        messages = [
            pb.Message(role=pb.ROLE_USER, text="How long?", run_id="r1"),
            pb.Message(role=pb.ROLE_ASSISTANT, text="removed", run_id="r1", forgotten=True),
            pb.Message(role=pb.ROLE_UNKNOWN, text="a critic speaks"),
            pb.Message(role=99, text="somebody speaks"),  # type: ignore[arg-type]
            pb.Message(role=pb.ROLE_ASSISTANT, text="Two weeks.", run_id="r2"),
        ]
        return pb.GetHistoryResponse(messages=messages)

    async def ForgetAnswer(self, request: Any, context: Any) -> pb.ForgetAnswerResponse:
        self.forgotten.append((request.thread_id, request.run_id))
        return pb.ForgetAnswerResponse()


async def test_history_is_what_users_and_assistants_say_and_is_not_forgotten() -> None:
    memory = Memory()
    async with (
        running_servicer(rpc.add_MemoryServiceServicer_to_server, memory) as address,
        open_test_channel(address) as channel,
    ):
        threads = MemoryThreads(channel, timeout_s=5.0)
        assert await threads.history("t1", 8) == (
            Turn("user", "How long?", "r1"),
            Turn("assistant", "Two weeks.", "r2"),
        )
        await threads.forget_answer("t1", "r1")
    assert memory.forgotten == [("t1", "r1")]
