"""Facts in the memory service, and the queue of turns that are learnt from."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from groundwork.memory.v1 import memory_pb2 as pb
from groundwork.memory.v1 import memory_pb2_grpc as rpc

from kit.access.principal import current_principal
from kit.access.tokens import TokenSigner, TokenVerifier
from kit.jetstream import Job, Nats, WorkQueue
from kit.rpc.channel import Channel
from services.orchestrator.log.events import Degradation
from services.orchestrator.remembering.models import FactChange, Hint, KnownFact, Learnt, LearntTurn, Recalled
from services.orchestrator.state import LEARN

_CHANGES = {
    "add": pb.FACT_CHANGE_KIND_ADD,
    "update": pb.FACT_CHANGE_KIND_UPDATE,
    "supersede": pb.FACT_CHANGE_KIND_SUPERSEDE,
}
_KINDS = {
    "profile": pb.FACT_KIND_PROFILE,
    "preference": pb.FACT_KIND_PREFERENCE,
    "plan": pb.FACT_KIND_PLAN,
    "relation": pb.FACT_KIND_RELATION,
    "instruction": pb.FACT_KIND_INSTRUCTION,
}
_KIND_WORDS = {number: word for word, number in _KINDS.items()}
_QUERY_CHARACTERS_MAX = 2_000


class MemoryFacts:
    """Facts over the memory service's contract."""

    def __init__(self, channel: Channel, *, timeout_s: float, learn_timeout_s: float) -> None:
        self._stub = rpc.MemoryServiceStub(channel)
        self._timeout_s = timeout_s
        self._learn_timeout_s = learn_timeout_s

    async def recall(self, message: str, limit: int) -> Recalled:
        request = pb.RecallRequest(message_text=message[:_QUERY_CHARACTERS_MAX], top_k=limit)
        answer = await self._stub.Recall(request, timeout=self._timeout_s)
        hints = [
            Hint(hit.fact.fact_id, hit.text, _day(hit), hit.document_id, hit.document_name)
            for hit in answer.hints
            if hit.HasField("fact") or hit.document_id
        ]
        degraded = [Degradation(each.part, each.reason, each.message) for each in answer.degraded]
        return Recalled(answer.summary, hints, degraded)

    async def may_learn(self) -> bool:
        return not (await self._stub.Recall(pb.RecallRequest(), timeout=self._timeout_s)).paused

    async def nearest(self, text: str, limit: int) -> Sequence[KnownFact]:
        request = pb.SearchMemoryRequest(
            query_text=text[:_QUERY_CHARACTERS_MAX], top_k=limit, source=pb.MEMORY_SOURCE_FACT
        )
        answer = await self._stub.SearchMemory(request, timeout=self._timeout_s)
        return [_known(hit.fact) for hit in answer.hits if hit.HasField("fact")]

    async def learn(self, turn: LearntTurn, changes: Sequence[FactChange] | None) -> Learnt:
        request = pb.LearnTurnRequest(
            run_id=turn.run_id,
            thread_id=turn.thread_id,
            text=turn.text,
            changes=[_encode(change) for change in changes or ()],
            by_model=changes is not None,
        )
        request.at.FromDatetime(turn.at)
        answer = await self._stub.LearnTurn(request, timeout=self._learn_timeout_s)
        return Learnt(answer.summary_is_due, [_known(fact) for fact in answer.known], answer.known_version)

    async def keep_summary(self, summary: str, known_version: int) -> None:
        request = pb.KeepSummaryRequest(summary=summary, known_version=known_version)
        await self._stub.KeepSummary(request, timeout=self._timeout_s)


class NatsTurnQueue:
    """TurnQueue over the work queue LEARN. It is called as the run's principal, who is the principal of the job."""

    def __init__(self, queue: WorkQueue) -> None:
        self.queue = queue

    @classmethod
    async def open(cls, nats: Nats, signer: TokenSigner, verifier: TokenVerifier) -> "NatsTurnQueue":
        return cls(await WorkQueue.open(nats, LEARN, signer, verifier))

    async def add(self, turn: LearntTurn) -> None:
        name = f"{current_principal().tenant_id}.{turn.run_id}"
        await self.queue.publish(name, encode_turn(turn), job_id=name)


def encode_turn(turn: LearntTurn) -> bytes:
    """Who said it is said by the job's token."""
    record = {
        "run_id": turn.run_id,
        "thread_id": turn.thread_id,
        "text": turn.text,
        "at": turn.at.isoformat(),
        "by_model": turn.by_model,
        "local_models_only": turn.local_models_only,
    }
    return json.dumps(record, ensure_ascii=False).encode()


def decode_turn(job: Job) -> LearntTurn:
    """Raises one of kit.records.UNREADABLE."""
    record = json.loads(job.data)
    at = datetime.fromisoformat(record["at"])
    return LearntTurn(
        record["run_id"],
        record["thread_id"],
        record["text"],
        at,
        record.get("by_model", False),
        record.get("local_models_only", False),
    )


def _known(fact: pb.Fact) -> KnownFact:
    return KnownFact(fact.fact_id, fact.text, _KIND_WORDS.get(fact.kind, ""))


def _encode(change: FactChange) -> pb.FactChange:
    encoded = pb.FactChange(
        change=_CHANGES[change.change],
        text=change.text,
        kind=_KINDS[change.kind],
        said=change.said,
        fact_id=change.fact_id,
    )
    if change.valid_to is not None:
        encoded.valid_to.FromDatetime(change.valid_to)
    return encoded


def _day(hit: pb.MemoryHit) -> str:
    return hit.at.ToDatetime(tzinfo=UTC).date().isoformat() if hit.HasField("at") else ""
