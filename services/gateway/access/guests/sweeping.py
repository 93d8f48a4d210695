"""Removes what guests made once their stay is over: documents, conversations, runs and facts, by the calls by which the guests
could have removed them. Another look, after the longest request of a guest must have ended, finds what came late."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

import structlog
from groundwork.common.v1 import common_pb2
from groundwork.ingest.v1 import ingest_pb2
from groundwork.memory.v1 import memory_pb2
from groundwork.orchestrator.v1 import orchestrator_pb2

from kit.access.principal import Principal, current_principal, use_principal
from kit.errors import GroundworkError, NotFound
from kit.process.waiting import FailureLogLimit
from kit.stores.collections import DEFAULT_ID, FILES_ID, NOTES_ID, own_id
from services.gateway.access.guests.door import GuestDoor
from services.gateway.access.guests.guests import Guest, Guests
from services.gateway.access.guests.puzzles import LIVES_S
from services.gateway.backends import Backends

_log = structlog.get_logger()
_EVERY_S = 30.0
_PAGE = 100
_MARGIN_S = 120.0


class Sweeper:
    """Sweeps after guests. Every gateway does: to remove what is gone is harmless. `now` is the time of day in seconds since the
    epoch. Guests are swept also where no new ones are let in."""

    def __init__(self, door: GuestDoor, services: Backends, now: Callable[[], float]) -> None:
        self._door = door
        self._services = services
        self._now = now
        settings = services.settings
        self._late_s = max(settings.upload_timeout_s, settings.stream_timeout_s, LIVES_S) + _MARGIN_S

    async def run(self) -> None:
        """Sweeps until cancelled."""
        complaints = FailureLogLimit()
        while True:
            try:
                await self.sweep()
            except GroundworkError as error:
                if complaints.is_due():
                    _log.warning("guests_not_swept", reason=error.reason, error=error.message)
            await asyncio.sleep(_EVERY_S * random.uniform(0.5, 1.5))  # noqa: S311 - so that gateways take turns

    async def sweep(self) -> None:
        """Removes what is due. What fails is tried again the next time, and keeps nobody else's from being removed. Raises the last
        GroundworkError."""
        guests = await self._door.guests()
        failed: GroundworkError | None = None
        for guest in guests.gone():
            try:
                await self._sweep_after(guest, guests)
            except GroundworkError as error:
                failed = error
        if failed is not None:
            raise failed

    async def _sweep_after(self, guest: Guest, guests: Guests) -> None:
        now = self._now()
        is_swept = 0 < guest.swept_at <= now  # not by a clock that was ahead: the guest may have gone on since
        if is_swept and now < guest.swept_at + self._late_s:
            return
        await self._remove_all(self._door.principal(guest))
        if is_swept and not guests.has_place(guest, self._services.settings.guests_hours):
            await guests.forget(guest)
        else:
            await guests.note_swept(guest)

    async def _remove_all(self, guest: Principal) -> None:
        """What cannot be removed keeps nothing else from being removed. Raises the last GroundworkError."""
        failed: GroundworkError | None = None
        with use_principal(guest):
            for remove in (self._remove_runs, self._remove_threads, self._forget_facts, self._remove_own_documents):
                try:
                    await remove()
                except GroundworkError as error:
                    failed = error
        if failed is not None:
            raise failed

    async def _forget_facts(self) -> None:
        await self._services.memory.ForgetFacts(memory_pb2.ForgetFactsRequest(all=True), timeout=self._timeout_s)

    async def _remove_own_documents(self) -> None:
        local = self._services.settings.local_principal()
        for name in (DEFAULT_ID, NOTES_ID, FILES_ID):
            await self._remove_documents(own_id(name, current_principal(), local))

    async def _remove_runs(self) -> None:
        stub, timeout_s = self._services.orchestrator, self._timeout_s
        await _remove_each(
            lambda page: stub.ListRuns(orchestrator_pb2.ListRunsRequest(page=page), timeout=timeout_s),
            lambda answer: [run.run_id for run in answer.runs],
            lambda run_id: stub.DeleteRun(orchestrator_pb2.DeleteRunRequest(run_id=run_id), timeout=timeout_s),
        )

    async def _remove_threads(self) -> None:
        stub, timeout_s = self._services.memory, self._timeout_s
        await _remove_each(
            lambda page: stub.ListThreads(memory_pb2.ListThreadsRequest(page=page), timeout=timeout_s),
            lambda answer: [thread.thread_id for thread in answer.threads],
            lambda thread_id: stub.DeleteThread(memory_pb2.DeleteThreadRequest(thread_id=thread_id), timeout=timeout_s),
        )

    async def _remove_documents(self, collection_id: str) -> None:
        stub, timeout_s = self._services.ingest, self._timeout_s
        with suppress(NotFound):
            await _remove_each(
                lambda page: stub.ListDocuments(
                    ingest_pb2.ListDocumentsRequest(collection_id=collection_id, page=page), timeout=timeout_s
                ),
                lambda answer: [document.document_id for document in answer.documents],
                lambda id_: stub.DeleteDocument(ingest_pb2.DeleteDocumentRequest(document_id=id_), timeout=timeout_s),
            )
            await stub.DeleteCollection(
                ingest_pb2.DeleteCollectionRequest(collection_id=collection_id), timeout=timeout_s
            )

    @property
    def _timeout_s(self) -> float:
        return self._services.settings.rpc_timeout_s


async def _remove_each(
    list_page: Callable[[common_pb2.PageRequest], Awaitable[Any]],
    ids_of: Callable[[Any], Iterable[str]],
    remove: Callable[[str], Awaitable[Any]],
) -> None:
    """Removes all that is on any page; what is gone meanwhile is none the worse."""
    ids: list[str] = []
    page = common_pb2.PageRequest(page_size=_PAGE)
    while True:
        answer = await list_page(page)
        ids.extend(ids_of(answer))
        if not answer.next_page_token:
            break
        page = common_pb2.PageRequest(page_size=_PAGE, page_token=answer.next_page_token)
    for id_ in ids:
        with suppress(NotFound):
            await remove(id_)
