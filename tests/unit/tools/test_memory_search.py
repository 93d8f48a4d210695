"""What is remembered, as the tool `memory_search` tells it: each hit says with what its text is forgotten."""

from collections.abc import Sequence

from groundwork.tools.v1 import tools_pb2 as pb

from services.tools.adapters.wire import decode_outcome, encode_outcome
from services.tools.models import Quoted, ToolOutcome
from services.tools.ports import Remembered
from services.tools.toolbox.searching.memory_search import memory_search
from tests.unit.tools.document_fakes import tool_context

FACT = Remembered("fact", "I live in Ghent.", "", fact_id="f1")
MESSAGE = Remembered("message", "User: I live in Ghent.", "", thread_id="t1", message_id="m1")
NOTE = Remembered("note", "Tea at four.", "", document_id="d1", document_name="memories/tea.md")
QUOTES = (Quoted("f1"), Quoted(thread_id="t1", message_id="m1"), Quoted(document_id="d1"))


class FakeMemory:
    """Remembers a hit of each source."""

    async def search(self, query: str, top_k: int) -> Sequence[Remembered]:
        return (FACT, MESSAGE, NOTE)[:top_k]


async def test_what_it_found_is_forgotten_with_its_fact_message_or_note() -> None:
    output = await memory_search("Ghent", tool_context(memory=FakeMemory()))
    assert output.quotes == QUOTES
    assert [hit["from"] for hit in output.content["hits"]] == ["fact", "message", "note"]


def test_contract_carries_with_what_an_output_is_forgotten() -> None:
    outcome = ToolOutcome(True, 0.5, {"hits": []}, quotes=QUOTES)
    message = pb.ToolResult.FromString(encode_outcome(outcome).SerializeToString())
    assert [each.WhichOneof("source") for each in message.quotes] == ["fact_id", "message", "document_id"]
    assert decode_outcome(message).quotes == QUOTES
