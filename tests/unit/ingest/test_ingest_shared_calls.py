"""Small documents share calls of the model server, and nothing else: not their errors, and not their ends."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from kit.errors import InvalidArgument, Unavailable
from services.ingest.documents.models import Lane
from services.ingest.ports import Vectors
from services.ingest.work.shared_calls import SharedCalls
from tests.unit.ingest.fakes import FakeEmbedder

AT_ONCE = 4


class Numbered(FakeEmbedder):
    """The vector of a text "7" is [7, 7, 7, 7]. Refuses every call with a text of `refused`."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.refused: set[str] = set()
        self.refusal: Exception = InvalidArgument("a text is blank")
        self.cancelled = 0

    async def embed(self, texts: Sequence[str]) -> tuple[Vectors, str]:
        try:
            await super().embed(texts)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.refused & set(texts):
            raise self.refusal
        return np.array([[float(text)] * self.dimension for text in texts], dtype=np.float32), self.name


class Documents:
    """Documents whose texts are embedded; as many calls as are made at once are held up by the gate."""

    def __init__(self, *, max_tokens: int = 100, max_texts: int = 100) -> None:
        self.embedder = Numbered()
        self.calls = SharedCalls(self.embedder, batch_tokens=max_tokens, batch_texts=max_texts)

    async def begin(self, *texts: str, tenant_id: str = "t", tokens: int = 10) -> "asyncio.Task[tuple[Vectors, str]]":
        task = asyncio.create_task(self.calls.embed((tenant_id, Lane.INTERACTIVE), texts, tokens))
        for _ in range(3):  # until it has come as far as it can
            await asyncio.sleep(0)
        return task

    async def fill(self) -> "list[asyncio.Task[tuple[Vectors, str]]]":
        return [await self.begin(str(n)) for n in range(AT_ONCE)]

    def open(self) -> None:
        assert self.embedder.gate is not None
        self.embedder.gate.set()


async def test_who_comes_first_waits_for_nobody_and_who_comes_meanwhile_shares() -> None:
    documents = Documents()
    first = await documents.fill()
    assert documents.embedder.calls == [["0"], ["1"], ["2"], ["3"]]
    later = [await documents.begin("7", "8"), await documents.begin("9")]
    assert len(documents.embedder.calls) == AT_ONCE
    documents.open()
    answers = await asyncio.gather(*first, *later)
    assert documents.embedder.calls[AT_ONCE:] == [["7", "8", "9"]]
    assert [vectors[:, 0].tolist() for vectors, _ in answers] == [[0], [1], [2], [3], [7, 8], [9]]
    assert {model for _, model in answers} == {documents.embedder.name}


@pytest.mark.parametrize("bounds", [{"max_tokens": 25}, {"max_texts": 2}])
async def test_call_is_no_larger_than_a_batch(bounds: dict[str, int]) -> None:
    documents = Documents(**bounds)
    tasks = await documents.fill() + [await documents.begin(str(n)) for n in (5, 6, 7)]
    documents.open()
    await asyncio.gather(*tasks)
    assert documents.embedder.calls[AT_ONCE:] == [["5", "6"], ["7"]]


async def test_tenants_do_not_share() -> None:
    documents = Documents()
    tasks = await documents.fill()
    tasks += [await documents.begin("5"), await documents.begin("6", tenant_id="other")]
    assert documents.embedder.calls[AT_ONCE:] == [["6"]]
    documents.open()
    await asyncio.gather(*tasks)
    assert documents.embedder.calls[AT_ONCE:] == [["6"], ["5"]]


async def test_refusal_of_one_documents_text_is_no_others() -> None:
    documents = Documents()
    documents.embedder.refused = {"6"}
    tasks = await documents.fill() + [await documents.begin(text) for text in "567"]
    documents.open()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(answer, InvalidArgument) for answer in answers] == [False] * 5 + [True, False]


async def test_server_that_is_away_is_told_to_all_at_once() -> None:
    documents = Documents()
    documents.embedder.refused, documents.embedder.refusal = {"6"}, Unavailable("away", reason="TEST")
    tasks = await documents.fill() + [await documents.begin(text) for text in "56"]
    documents.open()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers[AT_ONCE:]] == [Unavailable, Unavailable]
    assert len(documents.embedder.calls) == AT_ONCE + 1


async def test_document_that_is_stopped_leaves_the_others_their_call() -> None:
    documents = Documents()
    tasks = await documents.fill()
    waiting, stopped_while_waiting = await documents.begin("5"), await documents.begin("6")
    stopped_while_waiting.cancel()
    documents.open()
    await asyncio.gather(*tasks, waiting)
    assert documents.embedder.calls[AT_ONCE:] == [["5"]]

    assert documents.embedder.gate is not None
    documents.embedder.gate.clear()
    tasks = await documents.fill()
    shared = [await documents.begin("5"), await documents.begin("6")]
    tasks[0].cancel()  # alone in its call, which ends: the next begins, with both
    await asyncio.wait([tasks[0]])
    await documents.begin("7")
    assert documents.embedder.cancelled == 1
    assert documents.embedder.calls[-1] == ["5", "6"]
    shared[0].cancel()
    await asyncio.wait([shared[0]])
    documents.open()
    vectors, _ = await shared[1]
    assert vectors[:, 0].tolist() == [6]
    assert documents.embedder.cancelled == 1
    await asyncio.gather(*tasks[1:])
