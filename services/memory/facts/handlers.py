"""The edge of what is remembered of people, gRPC: decode, call, encode."""

import base64
import binascii
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from groundwork.common.v1 import common_pb2
from groundwork.memory.v1 import memory_pb2 as pb
from groundwork.memory.v1 import memory_pb2_grpc

from kit.access.principal import current_principal
from services.memory.errors import BadFact, BadForgetting, BadPageToken
from services.memory.facts.facts import FACT, TEXT_CHARACTERS_MAX, Change, Facts
from services.memory.facts.models import MODEL, Fact, FactKind, FactStatus, Statement, Turn
from services.memory.facts.searching import NOTE, Degraded, Hit, MemorySearch
from services.memory.facts.turns import Turns
from services.memory.message_items import MESSAGE
from services.memory.models import Owner

FACTS_PER_FORGETTING_MAX = 100
PAGE_DEFAULT, PAGE_MAX = 100, 1000
_KINDS = {
    pb.FACT_KIND_PROFILE: FactKind.PROFILE,
    pb.FACT_KIND_PREFERENCE: FactKind.PREFERENCE,
    pb.FACT_KIND_PLAN: FactKind.PLAN,
    pb.FACT_KIND_RELATION: FactKind.RELATION,
    pb.FACT_KIND_INSTRUCTION: FactKind.INSTRUCTION,
}
_KIND_NUMBERS = {FactKind.UNKNOWN: pb.FACT_KIND_UNKNOWN, **{kind: number for number, kind in _KINDS.items()}}
_STATUS_NUMBERS = {
    FactStatus.ACTIVE: pb.FACT_STATUS_ACTIVE,
    FactStatus.SUPERSEDED: pb.FACT_STATUS_SUPERSEDED,
    FactStatus.EXPIRED: pb.FACT_STATUS_EXPIRED,
}
_SOURCE_NUMBERS = {FACT: pb.MEMORY_SOURCE_FACT, MESSAGE: pb.MEMORY_SOURCE_MESSAGE, NOTE: pb.MEMORY_SOURCE_NOTE}
_SOURCES = {number: source for source, number in _SOURCE_NUMBERS.items()}


class FactServicer(memory_pb2_grpc.MemoryServiceServicer):
    """What is remembered of the caller."""

    def __init__(self, facts: Facts, search: MemorySearch, turns: Turns) -> None:
        self._facts = facts
        self._search = search
        self._turns = turns

    async def GetMemory(self, request: pb.GetMemoryRequest, context: Any) -> pb.GetMemoryResponse:
        overview = await self._facts.overview(owner_of_call())
        return pb.GetMemoryResponse(
            summary=overview.summary,
            summary_by=overview.summary_by,
            paused=overview.paused,
            fact_count=overview.fact_count,
            enabled=self._facts.enabled,
            notes_collection_id=self._search.notes_collection_id,
        )

    async def PauseMemory(self, request: pb.PauseMemoryRequest, context: Any) -> pb.PauseMemoryResponse:
        await self._facts.pause(owner_of_call(), paused=request.paused)
        return pb.PauseMemoryResponse()

    async def ListFacts(self, request: pb.ListFactsRequest, context: Any) -> pb.ListFactsResponse:
        facts = await self._facts.listed(
            owner_of_call(),
            kind=_kind(request.kind),
            with_past=request.with_past,
            thread_id=request.thread_id,
        )
        size = min(request.page.page_size or PAGE_DEFAULT, PAGE_MAX)
        after = _read_token(request.page.page_token)
        rest = [fact for fact in facts if after is None or (fact.learnt_at.isoformat(), fact.fact_id) < after]
        return pb.ListFactsResponse(
            facts=[self._encode(fact) for fact in rest[:size]],
            next_page_token=_token(rest[size - 1]) if len(rest) > size else "",
        )

    async def GetFact(self, request: pb.GetFactRequest, context: Any) -> pb.GetFactResponse:
        fact, earlier = await self._facts.history(owner_of_call(), request.fact_id)
        return pb.GetFactResponse(fact=self._encode(fact), earlier=[self._encode(each) for each in earlier])

    async def EditFact(self, request: pb.EditFactRequest, context: Any) -> pb.EditFactResponse:
        change = Change(
            request.text if request.HasField("text") else None,
            _kind(request.kind),
            _time(request.valid_to) if request.HasField("valid_to") else None,
        )
        return pb.EditFactResponse(fact=self._encode(await self._facts.edit(owner_of_call(), request.fact_id, change)))

    async def ForgetFacts(self, request: pb.ForgetFactsRequest, context: Any) -> pb.ForgetFactsResponse:
        owner = owner_of_call()
        if bool(request.fact_ids) + bool(request.thread_id) + request.all != 1:
            raise BadForgetting(
                "say what is to be forgotten: facts by their ids, those of a thread, or all; one of the three"
            )
        if len(request.fact_ids) > FACTS_PER_FORGETTING_MAX:
            raise BadForgetting(
                f"{len(request.fact_ids)} facts at once; forget at most {FACTS_PER_FORGETTING_MAX} in a call"
            )
        if request.all:
            count = await self._facts.forget_all(owner)
        elif request.thread_id:
            count = await self._facts.forget_thread(owner, request.thread_id)
        else:
            count = await self._facts.forget(owner, request.fact_ids)
        return pb.ForgetFactsResponse(forgotten_count=count)

    async def SearchMemory(self, request: pb.SearchMemoryRequest, context: Any) -> pb.SearchMemoryResponse:
        source = _SOURCES.get(request.source, "")
        hits, degraded = await self._search.search(owner_of_call(), request.query_text, request.top_k, source)
        return pb.SearchMemoryResponse(hits=[self._hit(hit) for hit in hits], degraded=_degradations(degraded))

    async def Recall(self, request: pb.RecallRequest, context: Any) -> pb.RecallResponse:
        recalled = await self._search.recall(owner_of_call(), request.message_text, request.top_k)
        return pb.RecallResponse(
            summary=recalled.overview.summary,
            hints=[self._hit(hit) for hit in recalled.hints],
            degraded=_degradations(recalled.degraded),
            paused=recalled.overview.paused,
        )

    async def LearnTurn(self, request: pb.LearnTurnRequest, context: Any) -> pb.LearnTurnResponse:
        turn = Turn(request.run_id, request.thread_id, request.text, _time(request.at))
        read = [_statement(change) for change in request.changes] if request.by_model else None
        learnt = await self._turns.learn(owner_of_call(), turn, read)
        is_due = learnt.summary_is_due
        return pb.LearnTurnResponse(
            facts=[self._encode(fact) for fact in learnt.added],
            summary_is_due=is_due,
            known=[self._encode(fact) for fact in learnt.known] if is_due else [],
            known_version=learnt.profile.version,
        )

    async def KeepSummary(self, request: pb.KeepSummaryRequest, context: Any) -> pb.KeepSummaryResponse:
        await self._facts.keep_summary(owner_of_call(), request.summary, request.known_version)
        return pb.KeepSummaryResponse()

    def _encode(self, fact: Fact) -> pb.Fact:
        return encode_fact(fact, self._facts.now())

    def _hit(self, hit: Hit) -> pb.MemoryHit:
        return pb.MemoryHit(
            source=_SOURCE_NUMBERS.get(hit.source, pb.MEMORY_SOURCE_UNSPECIFIED),
            text=hit.text,
            score=hit.score,
            fact=self._encode(hit.fact) if hit.fact else None,
            thread_id=hit.thread_id,
            message_id=hit.message_id,
            document_id=hit.document_id,
            document_name=hit.document_name,
            at=timestamp(hit.at),
        )


def owner_of_call() -> Owner:
    """Whose call is in hand."""
    principal = current_principal()
    return Owner(principal.tenant_id, principal.subject)


def encode_fact(fact: Fact, now: datetime) -> pb.Fact:
    """The fact as it stands now."""
    return pb.Fact(
        fact_id=fact.fact_id,
        text=fact.text,
        kind=_KIND_NUMBERS[fact.kind],
        status=_STATUS_NUMBERS[fact.status(now)],
        learnt_at=timestamp(fact.learnt_at),
        valid_from=timestamp(fact.valid_from),
        valid_to=timestamp(fact.valid_to),
        confidence=fact.confidence,
        run_id=fact.run_id,
        thread_id=fact.thread_id,
        said=fact.said,
        superseded_by=fact.superseded_by,
        learnt_by=fact.learnt_by,
        edited_at=timestamp(fact.edited_at),
    )


def timestamp(at: datetime | None) -> Timestamp | None:
    """None for none."""
    if at is None:
        return None
    written = Timestamp()
    written.FromDatetime(at)
    return written


def _time(at: Timestamp) -> datetime:
    return at.ToDatetime(tzinfo=UTC)


def _kind(number: int) -> FactKind | None:
    if number == pb.FACT_KIND_UNSPECIFIED:
        return None
    if number not in _KINDS:
        raise BadFact("this kind of fact is not known; use profile, preference, plan, relation or instruction")
    return _KINDS[number]  # type: ignore[index] # a number of the enum


def _statement(change: pb.FactChange) -> Statement:
    return Statement(
        change.text.strip()[:TEXT_CHARACTERS_MAX],
        _KINDS.get(change.kind, FactKind.PROFILE),
        change.said,
        valid_to=_time(change.valid_to) if change.HasField("valid_to") else None,
        confidence=0.9,
        learnt_by=MODEL,
        replaces=change.fact_id if change.change != pb.FACT_CHANGE_KIND_ADD else "",
    )


def _degradations(degraded: Sequence[Degraded]) -> list[common_pb2.Degradation]:
    return [common_pb2.Degradation(part=part, reason=reason, message=said) for part, reason, said in degraded]


def _token(fact: Fact) -> str:
    return base64.urlsafe_b64encode(f"{fact.learnt_at.isoformat()} {fact.fact_id}".encode()).decode()


def _read_token(token: str) -> tuple[str, str] | None:
    if not token:
        return None
    try:
        at, _, fact_id = base64.urlsafe_b64decode(token.encode()).decode().partition(" ")
        return datetime.fromisoformat(at).isoformat(), fact_id
    except (ValueError, binascii.Error) as error:
        raise BadPageToken("the page token is not one of ours; start from the first page") from error
