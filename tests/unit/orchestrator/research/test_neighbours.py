"""The messages beside a message that was found: they join the evidence, a filter and another chat keep them out."""

from collections.abc import Sequence

from kit.errors import Unavailable
from services.orchestrator.log.events import (
    Evidence,
    MetadataValues,
    Origin,
    Retrieval,
    RunMode,
    RunStatus,
    SearchFilter,
    Thinking,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import ResearchOptions, RunRecord, RunRequest, SearchQuery
from tests.unit.orchestrator.cutting import AT, KEY, now
from tests.unit.orchestrator.fakes import FakeLibrary, MemoryLog
from tests.unit.orchestrator.research.test_research import Stage

TEXTS = ("Who opens the office on Monday?", "Me, with the brass key.", "Bring cake.", "Lunch is at noon.")


def chat(*channels: str) -> list[Evidence]:
    """An export, a message a chunk, each of the channel in its place."""
    return [
        Evidence(0, f"m{n}", "d", "chat.json", text, origin=Origin(channel, "ann", "2026-01-01", str(n)))
        for n, (text, channel) in enumerate(zip(TEXTS, channels, strict=True))
    ]


class Chat:
    """Finds the first message, whatever is asked."""

    def __init__(self, messages: Sequence[Evidence], place: int = 1) -> None:
        self.found = messages[place]

    async def search(self, query: SearchQuery) -> Retrieval:
        return Retrieval((self.found,), strategy="hybrid")


async def evidence(
    messages: Sequence[Evidence], *, filtered: bool = False, library: FakeLibrary | None = None
) -> tuple[Sequence[Evidence], Sequence[object]]:
    """The evidence of a run that finds the second message, and all payloads."""
    stage = Stage(Chat(messages), library=library or FakeLibrary({"d": messages}))  # type: ignore[arg-type] # a Searcher
    kept = SearchFilter((MetadataValues("author", ("ann",)),)) if filtered else None
    options = ResearchOptions("low", filter=kept)
    request = RunRequest(RunMode.AGENT, "Who has the brass key?", ("default",), research=options)
    log = MemoryLog()
    await stage.modes.run(RunRecord(KEY, "ann", request, RunStatus.RUNNING, AT), await Journal.open(KEY, log, now))
    payloads = [event.payload for event in log.events[KEY]]
    (retrieval,) = [each for each in payloads if isinstance(each, Retrieval)]
    return retrieval.evidence, payloads


async def test_message_before_and_message_after_join_the_evidence_and_say_how() -> None:
    found, _ = await evidence(chat("A", "A", "A", "A"))
    assert [(each.number, each.chunk_id) for each in found] == [(1, "m1"), (2, "m0"), (3, "m2")]
    assert [[rank.stage for rank in each.ranks] for each in found[1:]] == [["neighbour"], ["neighbour"]]
    assert all(each.score < found[0].score for each in found[1:])


async def test_message_of_another_chat_in_the_same_export_is_none() -> None:
    found, _ = await evidence(chat("A", "A", "B", "B"))
    assert [each.chunk_id for each in found] == ["m1", "m0"]


async def test_passage_that_is_no_message_brings_nothing() -> None:
    plain = [Evidence(0, f"m{n}", "d", "notes.md", text) for n, text in enumerate(TEXTS)]
    found, _ = await evidence(plain)
    assert [each.chunk_id for each in found] == ["m1"]


async def test_filter_of_the_request_holds_for_neighbours_too() -> None:
    found, _ = await evidence(chat("A", "A", "A", "A"), filtered=True)
    assert [each.chunk_id for each in found] == ["m1"]


async def test_neighbours_that_cannot_be_read_are_said_and_cost_no_answer() -> None:
    class Away(FakeLibrary):
        async def around(self, chunk_ids):  # type: ignore[no-untyped-def]
            raise Unavailable("away", reason="LIBRARY_SILENT")

    found, payloads = await evidence(chat("A", "A", "A", "A"), library=Away())
    assert [each.chunk_id for each in found] == ["m1"]
    assert [each.degraded.part for each in payloads if isinstance(each, Thinking) and each.degraded] == ["neighbours"]
