"""What is remembered of the caller: to be seen, changed, forgotten and taken away."""

from typing import Annotated

from fastapi import APIRouter, Query
from groundwork.common.v1 import common_pb2
from groundwork.memory.v1 import memory_pb2 as pb

from services.gateway.access.scopes import NEEDS_QUERY
from services.gateway.backends import Backends, Services
from services.gateway.encoding import encode, enum_number
from services.gateway.models import Json
from services.gateway.schemas.conversations.memory import (
    Fact,
    FactChange,
    FactKind,
    FactList,
    FactWithHistory,
    MemoryExport,
    MemoryForgetting,
    MemoryForgotten,
    MemoryHit,
    MemoryHits,
    MemoryPause,
    MemoryQuery,
    MemorySummary,
)
from services.gateway.schemas.documents.search import Degradation, start_of
from services.gateway.schemas.fields import TRUE_OR_FALSE, FactPath, PageSize, PageToken, ThreadId
from services.gateway.schemas.problem import problems

router = APIRouter(prefix="/v1/memory", tags=["memory"], dependencies=[NEEDS_QUERY])

_PAGE = 1000
_FORGOTTEN_AT_ONCE = 100
_KINDS = pb.FactKind.DESCRIPTOR


@router.get("/facts", responses=problems())
async def list_facts(
    services: Services,
    kind: Annotated[FactKind | None, Query(description="Facts of this kind only.")] = None,
    with_past: Annotated[
        bool, TRUE_OR_FALSE, Query(description="Whether facts that do not hold any more are listed, too.")
    ] = False,
    thread_id: Annotated[ThreadId | None, Query(description="Facts that were learnt in this thread only.")] = None,
    page_size: PageSize = 100,
    page_token: PageToken = "",
) -> FactList:
    """What is known of you, newest first."""
    request = pb.ListFactsRequest(
        kind=enum_number(_KINDS, kind),
        with_past=with_past,
        thread_id=thread_id or "",
        page=common_pb2.PageRequest(page_size=page_size, page_token=page_token),
    )
    answer = await services.memory.ListFacts(request, timeout=services.settings.rpc_timeout_s)
    return FactList(facts=[_fact(each) for each in answer.facts], next_page_token=answer.next_page_token or None)


@router.get("/facts/{fact_id}", responses=problems(404))
async def get_fact(fact_id: FactPath, services: Services) -> FactWithHistory:
    """A fact, where it comes from, and what it took the place of."""
    answer = await services.memory.GetFact(pb.GetFactRequest(fact_id=fact_id), timeout=services.settings.rpc_timeout_s)
    return FactWithHistory.model_validate(
        {**_encoded(answer.fact), "earlier": [_encoded(each) for each in answer.earlier]}
    )


@router.patch("/facts/{fact_id}", responses=problems(404, 409, 413, 415))
async def edit_fact(fact_id: FactPath, change: FactChange, services: Services) -> Fact:
    """Changes a fact. What you write is taken for sure."""
    request = pb.EditFactRequest(fact_id=fact_id, text=change.text, kind=enum_number(_KINDS, change.kind))
    if change.valid_to is not None:
        request.valid_to.FromDatetime(start_of(change.valid_to))
    answer = await services.memory.EditFact(request, timeout=services.settings.rpc_timeout_s)
    return _fact(answer.fact)


@router.delete("/facts/{fact_id}", status_code=204, responses=problems())
async def forget_fact(fact_id: FactPath, services: Services) -> None:
    """Forgets a fact, what it took the place of, and within a minute the answers that were shown it. Harmless when repeated."""
    await services.memory.ForgetFacts(
        pb.ForgetFactsRequest(fact_ids=[fact_id]), timeout=services.settings.rpc_timeout_s
    )


@router.get("/summary", responses=problems())
async def get_summary(services: Services) -> MemorySummary:
    """What is known of you in short, and whether anything is learnt."""
    answer = await services.memory.GetMemory(pb.GetMemoryRequest(), timeout=services.settings.rpc_timeout_s)
    return MemorySummary.model_validate({**encode(answer), "summary_by": answer.summary_by or None})


@router.post("/pause", responses=problems(413, 415))
async def pause_memory(pause: MemoryPause, services: Services) -> MemorySummary:
    """Has nothing learnt from what you say from now on, or learns again."""
    await services.memory.PauseMemory(
        pb.PauseMemoryRequest(paused=pause.paused), timeout=services.settings.rpc_timeout_s
    )
    return await get_summary(services)


@router.get("/export", responses=problems())
async def export_memory(services: Services) -> MemoryExport:
    """All that is remembered of you, but for threads and documents, which have routes of their own."""
    summary = await get_summary(services)
    return MemoryExport(summary=summary.summary, paused=summary.paused, facts=await _all_facts(services))


@router.post("/search", responses=problems(413, 415))
async def search_memory(query: MemoryQuery, services: Services) -> MemoryHits:
    """What is remembered that fits a text, by meaning and by words: facts, messages of your threads, and notes."""
    request = pb.SearchMemoryRequest(
        query_text=query.query,
        top_k=query.top_k,
        source=enum_number(pb.MemorySource.DESCRIPTOR, query.source),
    )
    answer = await services.memory.SearchMemory(request, timeout=services.settings.rpc_timeout_s)
    return MemoryHits(
        hits=[_hit(each) for each in answer.hits],
        degraded=[Degradation.model_validate(encode(each)) for each in answer.degraded],
    )


@router.post("/forget", responses=problems(413, 415))
async def forget(what: MemoryForgetting, services: Services) -> MemoryForgotten:
    """Forgets single facts, all facts with given words, all facts of a thread, or everything. Harmless when repeated."""
    if what.everything:
        return MemoryForgotten(forgotten=await _forget(services, pb.ForgetFactsRequest(all=True)))
    if what.thread_id:
        return MemoryForgotten(forgotten=await _forget(services, pb.ForgetFactsRequest(thread_id=what.thread_id)))
    fact_ids = what.fact_ids or await _ids_of_facts_with(services, what.text or "")
    count = 0
    for start in range(0, len(fact_ids), _FORGOTTEN_AT_ONCE):
        request = pb.ForgetFactsRequest(fact_ids=fact_ids[start : start + _FORGOTTEN_AT_ONCE])
        count += await _forget(services, request)
    return MemoryForgotten(forgotten=count)


async def _forget(services: Backends, request: pb.ForgetFactsRequest) -> int:
    answer = await services.memory.ForgetFacts(request, timeout=services.settings.rpc_timeout_s)
    return int(answer.forgotten_count)


async def _ids_of_facts_with(services: Backends, text: str) -> list[str]:
    words = " ".join(text.casefold().split())
    return [each.id for each in await _all_facts(services) if words in " ".join(each.text.casefold().split())]


async def _all_facts(services: Backends) -> list[Fact]:
    facts: list[Fact] = []
    token = ""
    while True:
        page = common_pb2.PageRequest(page_size=_PAGE, page_token=token)
        request = pb.ListFactsRequest(with_past=True, page=page)
        answer = await services.memory.ListFacts(request, timeout=services.settings.rpc_timeout_s)
        facts += [_fact(each) for each in answer.facts]
        if not (token := answer.next_page_token):
            return facts


def _fact(message: pb.Fact) -> Fact:
    return Fact.model_validate(_encoded(message))


def _encoded(message: pb.Fact) -> Json:
    body = encode(message)
    known = ("rules", "model", "owner")
    return body | {
        "id": body.pop("fact_id"),
        "superseded_by": body["superseded_by"] or None,
        "learnt_by": body["learnt_by"] if body["learnt_by"] in known else "unknown",
    }


def _hit(message: pb.MemoryHit) -> MemoryHit:
    fact = _encoded(message.fact) if message.HasField("fact") else None
    return MemoryHit.model_validate({**encode(message), "fact": fact})
