"""Programs of users. They try again what failed, as good clients do, at another gateway and with the same idempotency key; every
failure is noted all the same."""

import asyncio
import random
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from chaos.clients import unique_word
from cli.client.sse import Event, read_events
from tests.cluster.facts import Answer, Fact, User, mistake_in
from tests.cluster.journal import Journal
from tests.integration.api import Event as ShownEvent
from tests.integration.api import shown_text

PAUSE_S = 0.3
LAST_TRIES_S = 120.0
"""For what is in hand at the end, when everything is well again."""
EVENT_STREAM = {"accept": "text/event-stream"}
NOT_ANSWERED = {"failed", "cancelled", "timeout"}
Addresses = Callable[[], Sequence[str]]


class Client(ABC):
    """One user's program."""

    what = ""

    def __init__(self, addresses: Addresses, journal: Journal, user: User) -> None:
        self.user = user
        self.journal = journal
        self._addresses = addresses
        self._address = random.choice(addresses())

    @abstractmethod
    async def act(self, http: httpx.AsyncClient, enough: asyncio.Event) -> bool:
        """Does one thing, to its end; False when there is nothing more to do."""

    def go_elsewhere(self) -> None:
        """To the next gateway, which is another one when there are several."""
        addresses = list(self._addresses())
        place = addresses.index(self._address) + 1 if self._address in addresses else 0
        self._address = addresses[place % len(addresses)]

    async def failed(self, reason: str) -> None:
        """Notes it, and goes elsewhere after a pause."""
        self.journal.failed(self.what, reason)
        self.go_elsewhere()
        await asyncio.sleep(PAUSE_S)


class _Tries:
    """As many as the traffic lasts, and for a while after."""

    def __init__(self, enough: asyncio.Event) -> None:
        self._enough = enough
        self._last_at = 0.0
        self.count = 0

    def another(self) -> bool:
        self.count += 1
        if not self._enough.is_set():
            return True
        self._last_at = self._last_at or time.monotonic() + LAST_TRIES_S
        return time.monotonic() < self._last_at


class Uploader(Client):
    """Uploads one small document after the other, as long as `quota` lasts."""

    what = "upload"

    def __init__(self, addresses: Addresses, journal: Journal, user: User, number: int, quota: Iterator[int]) -> None:
        super().__init__(addresses, journal, user)
        self._number = number
        self._quota = quota

    async def act(self, http: httpx.AsyncClient, enough: asyncio.Event) -> bool:
        number = next(self._quota, None)
        if number is None:
            return False
        word = unique_word(self._number, number)
        acknowledged = self.journal.uploads.setdefault((self.user.name, word), set())
        file = {"file": (f"mooring-{word}.txt", f"The mooring {word} lies in the harbour of Emden.".encode())}
        headers, tries = {"idempotency-key": str(uuid.uuid4())}, _Tries(enough)
        while tries.another():
            try:
                path = f"/v1/collections/{self.user.collection_id}/documents"
                response = await http.post(f"{self._address}{path}", files=file, headers=headers)
            except httpx.HTTPError as error:
                await self.failed(type(error).__name__)
                continue
            if response.status_code == 202:
                acknowledged.add(str(response.json()["document"]["id"]))
                self.journal.noted()
                return True
            await self.failed(_refusal(response))
        self.journal.unfinished.append(f"upload {word} after {tries.count} tries")
        return True


class _Asks(Client):
    def __init__(self, addresses: Addresses, journal: Journal, user: User, others: Sequence[User]) -> None:
        super().__init__(addresses, journal, user)
        self._others = others

    def question(self) -> tuple[Fact, dict[str, Any]]:
        fact = random.choice(self.user.facts)
        return fact, {"question": fact.question, "collection_ids": [self.user.collection_id]}

    def judge(self, answer: Answer, fact: Fact) -> None:
        if mistake := mistake_in(answer, self.user, fact, self._others):
            self.journal.mistakes.append(mistake)
        self.journal.answers += 1
        self.journal.unavailable += answer.says_that_it_could_not_search
        self.journal.noted()


class Asker(_Asks):
    """Asks for answers in one piece."""

    what = "question"

    async def act(self, http: httpx.AsyncClient, enough: asyncio.Event) -> bool:
        (fact, body), began = self.question(), time.monotonic()
        try:
            response = await http.post(f"{self._address}/v1/qa", json=body)
        except httpx.HTTPError as error:
            await self.failed(type(error).__name__)
            return True
        if response.is_error:
            await self.failed(_refusal(response))
            return True
        answer = Answer.of_json(response.json())
        if answer.status in NOT_ANSWERED:
            await self.failed(f"the run ended as {answer.status}")
        else:
            self.judge(answer, fact)
            self.journal.seconds.append(time.monotonic() - began)
        return True


@dataclass
class _Reading:
    """One answer as its reader has it so far."""

    question: dict[str, Any]
    key: str = field(default_factory=lambda: str(uuid.uuid4()))
    run_id: str = ""
    events: list[Event] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        return bool(self.events) and self.events[-1].kind == "done"

    def request(self, address: str) -> dict[str, Any]:
        """The next one: the question, or what comes behind the last event."""
        if not self.run_id:
            headers = {**EVENT_STREAM, "idempotency-key": self.key}
            return {"method": "POST", "url": f"{address}/v1/qa", "json": self.question, "headers": headers}
        last = {"last-event-id": str(self.events[-1].seq)} if self.events else {}
        return {"method": "GET", "url": f"{address}/v1/runs/{self.run_id}/events", "headers": {**EVENT_STREAM, **last}}


class Reader(_Asks):
    """Follows answers as event streams, and goes on behind the last event at another gateway when one breaks."""

    what = "stream"

    async def act(self, http: httpx.AsyncClient, enough: asyncio.Event) -> bool:
        fact, question = self.question()
        reading, tries = _Reading(question), _Tries(enough)
        self.go_elsewhere()
        while not reading.is_over and tries.another():
            self.journal.read_on += bool(reading.events)
            try:
                await self._read(http, reading)
            except _Refused as refused:
                reading.run_id = reading.run_id or refused.run_id
                await self.failed(refused.reason)
            except httpx.HTTPError as error:
                await self.failed(type(error).__name__)
            else:
                self.go_elsewhere()  # a gateway that stops ends its streams in good order
        self.journal.open_streams -= bool(reading.events)
        if reading.is_over:
            self._check(reading, fact)
        else:
            place = f"run {reading.run_id or 'that was not begun'} after {len(reading.events)} events"
            self.journal.unfinished.append(f"stream of {place} and {tries.count} tries")
        return True

    async def _read(self, http: httpx.AsyncClient, reading: _Reading) -> None:
        async for event in _stream(http, reading.request(self._address)):
            if event.seq is None:  # the gateway's own word: it lost the run, and reading on is what helps
                raise _Refused(f"event {event.kind} {event.data.get('reason', '')}", "")
            reading.run_id = reading.run_id or str(event.data["run_id"])
            reading.events.append(event)
            if len(reading.events) == 1:
                self.journal.open_streams += 1
                self.journal.noted()

    def _check(self, reading: _Reading, fact: Fact) -> None:
        events, mistakes = reading.events, self.journal.mistakes
        numbers = [event.seq for event in events]
        if numbers != list(range(1, len(numbers) + 1)):
            mistakes.append(f"run {reading.run_id}: events came as {numbers}")
        status = str(events[-1].data["status"])
        if status in NOT_ANSWERED:
            self.journal.failed(self.what, f"the run ended as {status}")
            return
        told = [event.data for event in events if event.kind == "answer"]
        shown = shown_text(ShownEvent(event.kind, event.data, event.seq) for event in events)
        if len(told) != 1 or told[0]["text"] != shown:
            mistakes.append(f"run {reading.run_id}: shown was {shown!r}, and the answers are {told}")
            return
        cited = frozenset(str(each["document_id"]) for each in told[0]["citations"])
        degraded = any(event.data.get("degraded") for event in events if event.kind == "thinking")
        self.judge(Answer(shown, status, told[0]["support_status"] or "", cited, degraded), fact)


class _Refused(Exception):
    def __init__(self, reason: str, run_id: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.run_id = run_id


async def _stream(http: httpx.AsyncClient, request: Mapping[str, Any]) -> AsyncIterator[Event]:
    async with http.stream(**request) as response:
        if response.is_error:
            await response.aread()
            raise _Refused(_refusal(response), str(_problem(response).get("run_id", "")))
        async for event in read_events(response.aiter_bytes()):
            yield event


def _refusal(response: httpx.Response) -> str:
    return f"{response.status_code} {_problem(response).get('reason', '')}".strip()


def _problem(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
