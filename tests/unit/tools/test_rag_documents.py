"""Keeping, listing and deleting documents by tools."""

from __future__ import annotations

from typing import Any

import pytest

from kit.access.principal import Principal
from services.tools import toolbox
from services.tools.documents import CollectionMissing, CollectionNotAllowed, DocumentState
from services.tools.errors import InvalidArguments, ToolError
from services.tools.models import Effect, ToolOutput
from services.tools.sources.discovery import discover
from services.tools.toolbox.documents import rag_forget as forgetting
from services.tools.toolbox.documents.rag_forget import rag_forget
from services.tools.toolbox.documents.rag_index import document_name, rag_index
from services.tools.toolbox.documents.rag_list import rag_list
from tests.unit.tools.document_fakes import FakeDocuments, Told, tool_context


def _content(output: ToolOutput) -> dict[str, Any]:
    content: dict[str, Any] = output.content
    return content


@pytest.fixture
def documents() -> FakeDocuments:
    return FakeDocuments()


def test_what_changes_documents_is_idempotent_and_needs_a_person() -> None:
    tools = discover(toolbox)
    for name in ("rag_index", "rag_forget"):
        assert tools[name].policy.needs_approval
        assert tools[name].policy.effect is Effect.IDEMPOTENT
    assert not tools["rag_list"].policy.needs_approval


async def test_a_text_is_kept_in_the_notes_which_are_made_for_it(documents: FakeDocuments) -> None:
    told = Told()
    output = await rag_index(
        text="The API is at /v2/users.", context=tool_context(documents=documents, told=told), title="API"
    )
    content = _content(output)
    assert (content["name"], content["collection_id"], content["searchable"]) == ("API.md", "notes", True)
    assert documents.texts[content["document_id"]] == "The API is at /v2/users."
    assert told.messages == ["Keeping API.md in notes", "Waiting until API.md is searchable"]


async def test_a_repeated_call_makes_no_second_document(documents: FakeDocuments) -> None:
    context = tool_context(documents=documents)
    first, again = await rag_index(text="A note.", context=context), await rag_index(text="A note.", context=context)
    assert _content(first)["document_id"] == _content(again)["document_id"]
    other = await rag_index(text="A note.", context=tool_context(documents=documents, call_id="run1/call2"))
    assert _content(other)["document_id"] != _content(first)["document_id"]


async def test_a_text_of_the_same_title_takes_the_place_of_the_one_before(documents: FakeDocuments) -> None:
    first = await rag_index(text="Old.", context=tool_context(documents=documents, call_id="1"), title="Plan")
    second = await rag_index(text="New.", context=tool_context(documents=documents, call_id="2"), title="Plan")
    assert _content(first)["document_id"] == _content(second)["document_id"]
    assert list(documents.texts.values()) == ["New."]


async def test_a_text_is_appended_to_the_document_of_its_title(documents: FakeDocuments) -> None:
    await rag_index(tool_context(documents=documents, call_id="1"), "One.", title="memories/tea.md", append=True)
    await rag_index(tool_context(documents=documents, call_id="2"), "Two.", title="memories/tea.md", append=True)
    assert list(documents.texts.values()) == ["One.\n\nTwo."]
    with pytest.raises(ToolError, match="give its title"):
        await rag_index(tool_context(documents=documents, call_id="3"), "Three.", append=True)


async def test_a_text_that_is_not_searchable_in_time_is_said_to_be_stored(documents: FakeDocuments) -> None:
    documents.settles_as = DocumentState.PROCESSING
    content = _content(await rag_index(text="A note.", context=tool_context(documents=documents)))
    assert (content["state"], content["searchable"], content["chunks"]) == ("processing", False, None)
    assert "stored safely" in content["message"]


async def test_a_text_is_kept_although_nobody_can_say_whether_it_is_searchable(
    documents: FakeDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(document_id: str, *, timeout_s: float) -> None:
        raise ToolError("the store of documents does not answer now")

    monkeypatch.setattr(documents, "settled", away)
    content = _content(await rag_index(text="A note.", context=tool_context(documents=documents)))
    assert (content["state"], content["searchable"]) == ("queued", False)
    assert documents.texts == {content["document_id"]: "A note."}


async def test_a_text_that_could_not_be_read_is_an_error_with_its_reason(documents: FakeDocuments) -> None:
    documents.settles_as, documents.error = DocumentState.FAILED, ("NO_TEXT", "the file has no text")
    with pytest.raises(ToolError, match="the file has no text") as failure:
        await rag_index(text="A note.", context=tool_context(documents=documents))
    assert failure.value.reason == "NO_TEXT"


async def test_a_file_of_a_source_is_indexed_by_its_path(documents: FakeDocuments) -> None:
    documents.source_files = {"contracts/2024/plan.pdf": ["papers"]}
    told = Told()
    output = await rag_index(tool_context(documents=documents, told=told), source_path="contracts/2024/plan.pdf")
    content = _content(output)
    assert (content["name"], content["collection_id"], content["searchable"]) == (
        "contracts/2024/plan.pdf",
        "papers",
        True,
    )
    assert told.messages == [
        "Taking contracts/2024/plan.pdf from its source",
        "Waiting until contracts/2024/plan.pdf is searchable",
    ]
    again = await rag_index(
        tool_context(documents=documents, call_id="run1/call2"), source_path="contracts/2024/plan.pdf"
    )
    assert _content(again)["document_id"] == content["document_id"]
    assert not documents.texts


async def test_a_file_of_a_source_is_looked_for_in_the_collections_of_the_call(documents: FakeDocuments) -> None:
    documents.source_files = {"contracts/plan.pdf": ["papers", "law"]}
    only = tool_context(documents=documents, collection_ids=["reports"])
    with pytest.raises(ToolError) as unknown:
        await rag_index(only, source_path="contracts/plan.pdf")
    assert unknown.value.reason == "SOURCE_FILE_NOT_FOUND"
    with pytest.raises(CollectionNotAllowed, match="it may use: reports"):
        await rag_index(only, source_path="contracts/plan.pdf", collection_id="law")
    named = await rag_index(tool_context(documents=documents), source_path="contracts/plan.pdf", collection_id="law")
    assert _content(named)["collection_id"] == "law"


@pytest.mark.parametrize("more", [{"text": "A note."}, {"title": "Plan"}])
async def test_a_path_and_a_text_exclude_each_other(documents: FakeDocuments, more: dict[str, str]) -> None:
    with pytest.raises(InvalidArguments, match="either source_path"):
        await rag_index(tool_context(documents=documents), source_path="contracts/plan.pdf", **more)


async def test_an_empty_text_is_refused(documents: FakeDocuments) -> None:
    with pytest.raises(ToolError, match="nothing to keep"):
        await rag_index(text=" \n", context=tool_context(documents=documents))


async def test_a_collection_that_is_not_there_is_not_made_up(documents: FakeDocuments) -> None:
    with pytest.raises(CollectionMissing):
        await rag_index(text="A note.", context=tool_context(documents=documents), collection_id="reports")
    assert documents.collections == {"default"}


async def test_a_bound_call_keeps_to_its_collections(documents: FakeDocuments) -> None:
    documents.collections |= {"reports", "law", "notes"}
    only = tool_context(documents=documents, collection_ids=["reports"])
    assert (
        _content(await rag_index(text="A note.", context=only, collection_id="reports"))["collection_id"] == "reports"
    )
    with pytest.raises(CollectionNotAllowed, match="it may use: reports"):
        await rag_index(text="A note.", context=only, collection_id="law")
    with pytest.raises(CollectionNotAllowed, match="it may use: reports"):
        await rag_index(
            text="A note.", context=only
        )  # in the notes: a person who allows it sees no other collection named
    both = tool_context(documents=documents, collection_ids=["reports", "law"])
    with pytest.raises(CollectionNotAllowed, match="reports, law"):
        await rag_index(text="A note.", context=both)
    foreign = documents.add("secret.md", "notes")
    for tool, named in ((rag_forget, foreign.document_id), (rag_forget, "secret.md")):
        with pytest.raises(CollectionNotAllowed):
            await tool(named, both)
    with pytest.raises(CollectionNotAllowed):
        await rag_list(both, collection_id="notes")
    assert _content(await rag_list(both))["collections"] == ["reports", "law"]
    assert foreign.document_id in documents.documents


@pytest.mark.parametrize(
    ("title", "text", "name"),
    [
        ("Q4 report", "x", "Q4 report.md"),
        ("plan.TXT", "x", "plan.TXT"),
        ("../../etc/passwd", "x", "etc/passwd.md"),
        ("memories/green tea", "x", "memories/green tea.md"),
        ("a\u202eb\n c", "x", "ab c.md"),
        ("", "# The API\nis new", "The API is new (0e403b98).md"),
        ("...", "///", "note (0e403b98).md"),
    ],
)
def test_names_of_documents(title: str, text: str, name: str) -> None:
    assert document_name(title, text, "run1/call1") == name


async def test_documents_are_listed_with_state_date_and_chunks(documents: FakeDocuments) -> None:
    documents.add("a.md")
    documents.add("b.md", state=DocumentState.FAILED, error_reason="NO_TEXT", error_message="it has no text")
    content = _content(await rag_list(tool_context(documents=documents)))
    assert content["collections"] == ["default", "notes"]
    assert content["documents"][0] == {
        "document_id": "00000000",
        "name": "a.md",
        "state": "ready",
        "uploaded_at": "2026-01-01T00:00:00+00:00",
        "changed_at": "2026-01-01T00:00:00+00:00",
        "chunks": 3,
    }
    assert content["documents"][1]["error"] == "it has no text"


async def test_a_long_list_is_read_page_by_page(documents: FakeDocuments) -> None:
    for number in range(5):
        documents.add(f"{number}.md")
    context = tool_context(documents=documents)
    first = _content(await rag_list(context, limit=3))
    rest = _content(await rag_list(context, limit=3, page_token=first["next_page_token"]))
    assert [each["name"] for each in first["documents"] + rest["documents"]] == [f"{number}.md" for number in range(5)]
    assert rest["next_page_token"] == ""


async def test_notes_that_nobody_has_kept_are_an_empty_list_and_another_collection_an_error() -> None:
    assert _content(await rag_list(tool_context()))["documents"] == []
    with pytest.raises(CollectionMissing):
        await rag_list(tool_context(), collection_id="reports")


@pytest.mark.parametrize("named", ["00000000", "Plan.md", "Plan"])
async def test_a_document_is_forgotten_by_id_or_name_once_and_for_all(documents: FakeDocuments, named: str) -> None:
    documents.add("Plan.md")
    documents.add("Planned.md")
    documents.page_size_max = 1
    context = tool_context(documents=documents)
    assert _content(await rag_forget(named, context))["deleted"]
    assert [each.name for each in documents.documents.values()] == ["Planned.md"]
    again = _content(await rag_forget(named, context))
    assert not again["deleted"]
    assert "no document" in again["message"]


async def test_of_two_names_the_exact_one_is_forgotten(documents: FakeDocuments) -> None:
    documents.add("Plan.md")
    documents.add("Plan")
    await rag_forget("Plan", tool_context(documents=documents))
    assert [each.name for each in documents.documents.values()] == ["Plan.md"]


async def test_a_name_that_looks_like_an_id_is_found_too(documents: FakeDocuments) -> None:
    documents.add("cafebabe")
    assert _content(await rag_forget("cafebabe", tool_context(documents=documents)))["deleted"]


async def test_a_collection_too_large_to_look_for_a_name_asks_for_the_id(
    documents: FakeDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forgetting, "PAGES_MAX", 2)
    documents.page_size_max = 1
    for number in range(3):
        documents.add(f"{number}.md")
    with pytest.raises(ToolError, match="give the document's id"):
        await rag_forget("2.md", tool_context(documents=documents))


async def test_everybody_keeps_notes_of_their_own(documents: FakeDocuments) -> None:
    """Two people want a collection called notes; neither finds, replaces or deletes what is the other's."""
    contexts = {
        each: tool_context(documents=documents, caller=Principal("acme", each), call_id=f"{each}/call1")
        for each in ("ann", "bob")
    }
    kept = {}
    for name, context in contexts.items():
        output = await rag_index(text=f"Of {name}.", context=context, title="Plan", collection_id="notes")
        kept[name] = _content(output)
    assert kept["ann"]["collection_id"] == contexts["ann"].notes != contexts["bob"].notes
    assert kept["ann"]["document_id"] != kept["bob"]["document_id"]
    await rag_forget("Plan", contexts["bob"])
    listed = _content(await rag_list(contexts["ann"]))
    assert [each["document_id"] for each in listed["documents"]] == [kept["ann"]["document_id"]]


async def test_default_is_the_callers_own(documents: FakeDocuments) -> None:
    context = tool_context(documents=documents, caller=Principal("acme", "ann"))
    own = context.resolve_collection_id("default")
    assert own.startswith("default-")
    documents.collections.add(own)
    assert _content(await rag_index(text="A note.", context=context, collection_id="default"))["collection_id"] == own
    bound = tool_context(documents=documents, caller=Principal("acme", "ann"), collection_ids=["notes"])
    assert bound.resolve_collection_id("notes") == "notes", "what a conversation is bound to is that very collection"
