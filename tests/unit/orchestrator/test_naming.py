"""Documents that a message names."""

import pytest

from services.orchestrator.log.events import Answer, Evidence, Retrieval, RunMode, RunStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import ReadableDocument, RunRecord, RunRequest
from services.orchestrator.naming import described, most_found, named_in
from tests.unit.orchestrator.cutting import AT, KEY, DyingLog, worked
from tests.unit.orchestrator.fakes import FakeLibrary, FakeSearcher
from tests.unit.orchestrator.serving import document_modes, mode_services

NAMES = ("wiki_duck.html", "reports/annual-report-2023.pdf", "handbook.docx", "notes.md", "2024.csv")
DOCUMENTS = [ReadableDocument(name, name, "r1", 1) for name in NAMES]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Summarise wiki_duck.html", ["wiki_duck.html"]),
        ("Summarise WIKI DUCK, please", ["wiki_duck.html"]),
        ("Compare annual-report-2023.pdf and handbook.docx", ["reports/annual-report-2023.pdf", "handbook.docx"]),
        ("Give me an overview of the annual report 2023", ["reports/annual-report-2023.pdf"]),
        ("Summarise the handbook", ["handbook.docx"]),
        ("Make notes of everything", []),
        ("What happened in 2024?", []),
        ("Summarise everything", []),
    ],
)
def test_documents_are_named_by_their_files(message: str, expected: list[str]) -> None:
    assert [each.name for each in named_in(message, DOCUMENTS)] == expected


def test_one_document_is_described_by_what_it_is_about() -> None:
    assert described("Summarise the article on ducks, shortly") == "ducks"
    assert described("Summarise all articles") == ""


def test_document_with_the_word_in_its_name_is_found_most() -> None:
    hits = [
        Evidence(1, "c1", "d1", "paper.md", "a duck"),
        Evidence(2, "c2", "d2", "wiki_duck.html", "ducks"),
        Evidence(3, "c3", "d2", "wiki_duck.html", "ducks"),
    ]
    assert most_found(hits, "ducks") == "d2"
    assert most_found([*hits[:2], Evidence(3, "c4", "d3", "x.md", "y")], least=0.9) == ""


@pytest.mark.parametrize("message", ["Summarise wiki_duck.html", "Summarise the article on ducks"])
async def test_summary_reads_the_document_that_is_meant(message: str) -> None:
    duck = Evidence(1, "c2", "d2", "wiki_duck.html", "Ducks are birds that live on rivers and lakes everywhere.")
    other = Evidence(1, "c1", "d1", "paper.md", "Geese are birds that live on meadows and fields everywhere.")
    library = FakeLibrary({"d1": [other], "d2": [duck]})
    searcher = FakeSearcher(Retrieval((duck,), strategy="hybrid"))
    record = RunRecord(
        KEY, "ann", RunRequest(RunMode.GROUNDED, message, ("default",), agent="summary"), RunStatus.RUNNING, AT
    )

    async def work(journal: Journal) -> RunStatus:
        return await document_modes(mode_services(searcher=searcher, library=library)).run(record, journal)

    events = await worked(DyingLog(), work)
    (answer,) = [each.payload for each in events if isinstance(each.payload, Answer)]
    assert library.reads == ["d2"]
    assert {each.document_name for each in answer.citations} == {"wiki_duck.html"}
