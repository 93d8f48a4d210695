"""Threads in the memory service."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from groundwork.memory.v1 import memory_pb2 as pb
from groundwork.memory.v1 import memory_pb2_grpc as rpc

from kit.channel import Channel
from kit.errors import Cancelled, DeadlineExceeded, Unavailable
from services.orchestrator.errors import MemorySilent
from services.orchestrator.models import Turn

_ROLES: dict[int, str] = {pb.ROLE_USER: "user", pb.ROLE_ASSISTANT: "assistant"}


class MemoryThreads:
    """Memory over the memory service's contract."""

    def __init__(self, channel: Channel, *, timeout_s: float) -> None:
        self._stub = rpc.MemoryServiceStub(channel)
        self._timeout_s = timeout_s

    async def history(self, thread_id: str, limit: int) -> Sequence[Turn]:
        request = pb.GetHistoryRequest(thread_id=thread_id, limit=limit)
        with _in_our_words():
            response = await self._stub.GetHistory(request, timeout=self._timeout_s)
        return tuple(
            Turn(_ROLES[message.role], message.text, message.run_id)
            for message in response.messages
            # What was forgotten says nothing, and a role of a newer version means something that a prompt has no place for.
            if not message.forgotten and message.role in _ROLES
        )

    async def forget_answer(self, thread_id: str, run_id: str) -> None:
        request = pb.ForgetAnswerRequest(thread_id=thread_id, run_id=run_id)
        with _in_our_words():
            await self._stub.ForgetAnswer(request, timeout=self._timeout_s)

    async def remember(self, thread_id: str, run_id: str, question: str, answer: str) -> None:
        # The ids follow from the run, so that a run that is finished twice is remembered once.
        messages = [
            pb.Message(message_id=f"{run_id}-question", role=pb.ROLE_USER, text=question, run_id=run_id),
            pb.Message(message_id=f"{run_id}-answer", role=pb.ROLE_ASSISTANT, text=answer, run_id=run_id),
        ]
        request = pb.AppendMessagesRequest(thread_id=thread_id, messages=messages)
        with _in_our_words():
            await self._stub.AppendMessages(request, timeout=self._timeout_s)


@contextmanager
def _in_our_words() -> Iterator[None]:
    """A user reads the message: gRPC's own names addresses and frames."""
    try:
        yield
    except (Unavailable, DeadlineExceeded, Cancelled) as error:  # Cancelled is what a stopping server says
        raise MemorySilent("the memory service does not answer now") from error
