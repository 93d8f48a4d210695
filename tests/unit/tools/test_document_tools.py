"""Tools that read documents whole: quotes, differences, fields and summaries, each with its place."""

from typing import Any

import pytest
from groundwork.common.v1 import common_pb2
from jsonschema import Draft202012Validator

from kit.llm import estimate_tokens
from services.tools.errors import InvalidArguments
from services.tools.passages.quoting import find_quote
from services.tools.passages.whole import DocumentNotFound
from services.tools.toolbox.documents import document_compare as compare_module
from services.tools.toolbox.documents import run_summary as summary_module
from services.tools.toolbox.documents import structured_extraction as extraction_module
from services.tools.toolbox.documents.document_compare import document_compare
from services.tools.toolbox.documents.document_search import document_search
from services.tools.toolbox.documents.run_summary import run_summary
from services.tools.toolbox.documents.structured_extraction import structured_extraction
from services.tools.toolbox.evidence import quote_finder as quote_module
from services.tools.toolbox.evidence.quote_finder import quote_finder
from tests.unit.tools.document_fakes import FakeDocuments, tool_context
from tests.unit.tools.search_fakes import FakeRetriever

SAID = "In June the board met. The notice period is six weeks for everybody. Leave is 28 days."


def _context(retriever: FakeRetriever, *collection_ids: str) -> Any:
    documents = FakeDocuments(collections={"default", "hall"})
    return tool_context(retriever=retriever, documents=documents, collection_ids=collection_ids)


@pytest.fixture
def retriever() -> FakeRetriever:
    return FakeRetriever()


async def test_quote_is_found_with_its_words_page_and_lines(retriever: FakeRetriever) -> None:
    retriever.add("d1", SAID, page=3)
    chunk = retriever.documents["d1"][0].hit.chunk
    for start, end in ((0, 22), (23, 68), (69, len(SAID))):
        line = common_pb2.BoundingBox(page=3, x0=1, y0=start, x1=2, y1=start + 10, char_start=start, char_end=end)
        chunk.bounding_boxes.append(line)
    output = await quote_finder(_context(retriever), "“the Notice period   is six weeks”")
    [quote] = output.content["quotes"]
    assert quote["source"] == {"document": "d1.md", "page": 3, "text": "The notice period is six weeks"}
    assert (quote["exact"], quote["likeness"]) == (True, 1.0)
    assert [line["y0"] for line in quote["lines"]] == [23]
    [cited] = output.passages
    assert (cited.hit.chunk.text, cited.hit.chunk.char_start) == ("The notice period is six weeks", 23)
    assert [(box.char_start, box.char_end) for box in cited.hit.chunk.bounding_boxes] == [(0, 30)]
    assert chunk.text == SAID


async def test_quote_that_is_nearly_right_is_said_to_be_near(retriever: FakeRetriever) -> None:
    retriever.add("d1", SAID)
    retriever.add("d2", "Nothing of notice here.")
    output = await quote_finder(_context(retriever), "The notice period is eight weeks for everybody")
    [quote] = output.content["quotes"]
    assert not quote["exact"]
    assert quote["source"]["text"] == "The notice period is six weeks for everybody"
    nothing = await quote_finder(_context(retriever), "Nobody ever pays any rent here")
    assert nothing.content["quotes"] == []
    assert "No passage says it" in nothing.content["note"]


def test_quote_begins_where_its_first_word_stands() -> None:
    place = find_quote("six weeks", "weeks; it is six, weeks", 0.9)
    assert place is not None
    assert (place.start, place.end) == (13, 23)
    assert find_quote("…", "words", 0.5) is None


async def test_differences_are_told_by_section_with_both_sides(retriever: FakeRetriever) -> None:
    def add(document_id: str, *sections: tuple[str, str]) -> None:
        retriever.add(document_id, *(text for _, text in sections))
        retriever.documents[document_id] = [
            type(each)(**{**vars(each), "heading_path": (heading,)})
            for each, (heading, _) in zip(retriever.documents[document_id], sections, strict=True)
        ]

    add("old", ("Leave", "Leave is 28 days. It is taken in summer."), ("Rent", "The tenant pays the rent monthly."))
    add("new", ("Leave", "Leave is 30 days. It is taken in summer."), ("Pets", "Dogs are allowed in the garden."))
    output = await document_compare(_context(retriever), "old", "new")
    leave, rent, pets = output.content["sections"]
    assert leave["changed"] == [
        {
            "first": {"chunk_id": "old-0", "text": "Leave is 28 days."},
            "second": {"chunk_id": "new-0", "text": "Leave is 30 days."},
        }
    ]
    assert rent == {
        "headings": {"first": "Rent", "second": None},
        "first_only": [{"chunk_id": "old-1", "text": "The tenant pays the rent monthly."}],
    }
    assert pets["second_only"][0]["text"] == "Dogs are allowed in the garden."
    assert output.content["same_sentences"] == 1
    assert {each.text for each in output.passages} >= {"Leave is 28 days.", "Leave is 30 days."}
    same = await document_compare(_context(retriever), "old", "old2") if retriever.add("old2", SAID) else None
    assert same is not None
    with pytest.raises(InvalidArguments, match="the same document"):
        await document_compare(_context(retriever), "old", "old")
    with pytest.raises(DocumentNotFound):
        await document_compare(_context(retriever, "hall"), "old", "new")


async def test_fields_are_read_with_their_places_and_missing_ones_are_named(retriever: FakeRetriever) -> None:
    retriever.add("d1", "Invoice No.: R-17\nTotal: 90.50 EUR\nThank you.", page=2)
    retriever.add("d2", "Team: Reds; Total: 82; Wins: 97\nTeam: Mets; Total: 93; Wins: 74")
    schema = {"type": "object", "properties": {"total": {"type": "number"}, "invoice no": {"type": "string"}}}
    output = await structured_extraction(_context(retriever), schema, ["d1", "d2"])
    first, *others = output.content["rows"]
    assert first["values"] == {"total": 90.5, "invoice no": "R-17"}
    assert first["cited"]["total"] == {"chunk_id": "d1-0", "quote": "90.50 EUR", "page": 2}
    assert [(row["values"]["total"], row["missing"]) for row in others] == [(82, ["invoice no"]), (93, ["invoice no"])]
    assert output.passages[0].text == "Invoice No.: R-17\nTotal: 90.50 EUR"
    assert output.summary == "4 of 6 values found in 3 rows from 2 documents."
    with pytest.raises(InvalidArguments, match="no properties"):
        await structured_extraction(_context(retriever), {"type": "string"}, ["d1"])


async def test_summary_has_sentences_of_all_parts_of_a_long_document_within_its_room(retriever: FakeRetriever) -> None:
    texts = [
        f"Chapter {n} says that the river number {n} flows through the valley number {n}. It is long."
        for n in range(300)
    ]
    retriever.add("d1", *texts)
    context = _context(retriever)
    output = await run_summary(context, "d1", sentences=20)
    places = [int(each["chunk_id"].removeprefix("d1-")) for each in output.content["sentences"]]
    assert places == sorted(places)
    assert len(places) == 20
    assert (output.content["passages_read"], output.content["document_passages"]) == (300, 300)
    assert sum(estimate_tokens(each.text) for each in output.passages) <= context.settings.tools_text_tokens
    focused = await run_summary(context, "d1", sentences=1, focus="river number 217")
    assert "217" in focused.content["sentences"][0]["source"]["text"]


@pytest.mark.parametrize("module", [compare_module, quote_module, summary_module, extraction_module])
def test_schemas_are_valid(module: Any) -> None:
    Draft202012Validator.check_schema(module.SCHEMA["function"]["parameters"])


async def test_documents_are_found_by_name_fields_and_content(retriever: FakeRetriever) -> None:
    documents = FakeDocuments()
    lease = documents.add("Lease 2024.pdf", "hall", metadata={"kind": "contract"})
    other = documents.add("Lease 2025.pdf", "hall", metadata={"kind": "draft"})
    letter = documents.add("letter.txt", "hall")
    retriever.add(letter.document_id, "The lease ends in June.", collection_id="hall")
    context = tool_context(retriever=retriever, documents=documents, collection_ids=("hall",))

    found = (await document_search(context, "lease")).content["documents"]
    assert [each["document_id"] for each in found] == [lease.document_id, other.document_id, letter.document_id]
    assert [each["found_by"] for each in found] == ["name or fields", "name or fields", "content"]
    assert found[2]["passage"] == "The lease ends in June."

    contracts = await document_search(context, metadata={"kind": ["contract"]})
    assert [each["name"] for each in contracts.content["documents"]] == ["Lease 2024.pdf"]
    assert (await document_search(context, "lease", k=1)).content["documents"][0]["name"] == "Lease 2024.pdf"
    with pytest.raises(InvalidArguments, match="rag_list"):
        await document_search(context)
