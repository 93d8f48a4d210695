"""Fields out of documents: each value is cited where it stands, and what is missing is said to be."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from kit.llm import Request
from kit.reading.fields import Field
from kit.reading.values import find_value, labelled_values, typed
from services.orchestrator.adapters.codec import event_to_proto
from services.orchestrator.answering.drafting import Drafter
from services.orchestrator.answering.generation import Generator
from services.orchestrator.extraction.fields import read_fields
from services.orchestrator.log.events import Answer, Artefact, Evidence, RunMode, RunStatus, Thinking
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunRecord, RunRequest
from tests.unit.orchestrator.cutting import AT, KEY, DyingLog, cut_and_continued, cuts, told, worked
from tests.unit.orchestrator.fakes import FakeLibrary, FakeScorer
from tests.unit.orchestrator.serving import document_modes, mode_services
from tests.unit.orchestrator.toolloop.scripting import Reply, ScriptedReplies

ASKED = "Extract invoice number, date and total amount from all invoices"


def invoices(count: int) -> FakeLibrary:
    """Invoices in four layouts; every fifth has no date."""
    return FakeLibrary({f"d{number}": [_invoice(number)] for number in range(1, count + 1)})


def _invoice(number: int) -> Evidence:
    date = "" if number % 5 == 0 else f"2026-03-{number % 28 + 1:02}"
    total = f"{number * 1000 + 17:,}.50"
    labels = [
        ("Invoice No.", f"R-{number:04}"),
        ("Customer", "Umbrella Ltd"),
        ("Date", date),
        ("Total amount", f"{total} EUR"),
    ]
    known = [(label, value) for label, value in labels if value]
    text = [
        lambda: "\n".join(f"{label}: {value}" for label, value in known),
        lambda: "\n".join(f"{label} | {value}" for label, value in known),
        lambda: f"{' | '.join(label for label, _ in known)}\n{' | '.join(value for _, value in known)}",
        lambda: "Thank you for your order.   " + "; ".join(f"{label}: {value}" for label, value in known),
    ][number % 4]()
    return Evidence(1, f"c{number}", f"d{number}", f"invoice-{number}.pdf", text, page=1)


def worker(library: FakeLibrary, question: str = ASKED, drafter: Drafter | None = None) -> Any:
    record = RunRecord(
        KEY, "ann", RunRequest(RunMode.GROUNDED, question, ("default",), agent="auto"), RunStatus.RUNNING, AT
    )
    modes = document_modes(mode_services(drafter, library=library))

    async def work(journal: Journal) -> RunStatus:
        return await modes.run(record, journal)

    return work


async def made(library: FakeLibrary, question: str = ASKED, drafter: Drafter | None = None) -> tuple[Artefact, Answer]:
    events = await worked(DyingLog(), worker(library, question, drafter))
    (table,) = [each.payload for each in events if isinstance(each.payload, Artefact)]
    (answer,) = [each.payload for each in events if isinstance(each.payload, Answer)]
    return table, answer


async def test_forty_invoices_are_read_without_a_model_and_each_value_is_cited() -> None:
    table, answer = await made(invoices(40))
    rows: Sequence[Sequence[Any]] = (table.body or {})["rows"]
    right = [
        (row[1] == f"R-{number:04}", row[2] == (f"2026-03-{number % 28 + 1:02}" if number % 5 else None))
        for number, row in enumerate(rows, start=1)
    ]
    assert len(rows) == 40
    assert sum(map(sum, right)) == 80
    assert all(row[3].startswith(f"{number * 1000 + 17:,}.50") for number, row in enumerate(rows, start=1))
    quotes = {each.number: each.text[each.quote_start : each.quote_end].strip() for each in table.citations}
    for item in table.items:
        _, _, row_at, column = item.path.split("/")
        assert quotes[item.citations[0]] == rows[int(row_at)][int(column)]
    assert answer.text.startswith("112 of 120 values were found in 40 documents. Missing: date in invoice-5.pdf")
    assert "date: missing" in table.outline


async def test_run_that_is_cut_off_reads_no_document_twice() -> None:
    whole = await worked(DyingLog(), worker(invoices(2)))
    for cut in cuts(whole):
        workers = [worker(invoices(2)) for _ in range(2)]
        assert told(await cut_and_continued(DyingLog(), workers, cut)) == told(whole), str(cut)


SCHEMA = """Extract {"type": "object", "properties": {"invoiceNumber": {"type": "string"}, "total_amount": {"type": "number"},
"vat": {"type": "number"}}} from all invoices"""


class Reader(ScriptedReplies):
    """A model that reads the number and makes the rest up."""

    def _reply(self, request: Request) -> Reply:
        return (
            '{"invoiceNumber": {"value": "R-0001", "source": 1}, "total_amount": {"value": "99", "source": 1},'
            ' "vat": {"value": "19", "source": 7}}'
        )


async def test_model_reads_fields_and_what_it_makes_up_is_left_out() -> None:
    table, _ = await made(invoices(1), SCHEMA, Drafter(FakeScorer(), Generator(Reader([""]))))
    assert (table.body or {})["rows"] == [["invoice-1.pdf", "R-0001", 1017.5, None]]


@pytest.mark.parametrize(
    ("message", "names"),
    [
        (ASKED, ["invoice number", "date", "total amount"]),
        ("Pull out the vendor and the due date of each invoice.", ["vendor", "due date"]),
        ("What is this about?", []),
    ],
)
def test_fields_are_read_from_the_words(message: str, names: list[str]) -> None:
    assert [each.name for each in read_fields(message)] == names


def test_fields_of_a_schema_have_its_types() -> None:
    assert read_fields(SCHEMA)[1] == Field("total_amount", "number")


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("1,234.50 EUR", "number", 1234.5),
        ("1.234,50 €", "number", 1234.5),
        ("1 234", "integer", 1234),
        ("12,5", "number", 12.5),
        ("1,234", "number", 1234),
        ("none", "number", None),
        ("2.5", "integer", None),
        ("Yes", "boolean", True),
    ],
)
def test_text_becomes_a_value_of_its_type(text: str, kind: str, value: object) -> None:
    assert typed(text, kind) == value


def test_label_that_is_nearest_wins() -> None:
    page = Evidence(1, "c", "d", "n", "Delivery date: 2026-01-01\nDate: 2026-02-02\nDue date: 2026-03-03")
    found = find_value(Field("due date"), labelled_values([page]))
    assert found is not None
    assert found.value == "2026-03-03"


async def test_rows_of_a_table_are_rows_and_each_value_is_cited() -> None:
    text = "Team: Reds; Payroll (millions): 82.20; Wins: 97\nTeam: Mets; Payroll (millions): 93.35; Wins: 74"
    piped = "Team | Wins\nCubs | 61\nTwins | 66"
    library = FakeLibrary(
        {
            "d1": [Evidence(1, "c1", "d1", "teams.csv", text)],
            "d2": [Evidence(1, "c2", "d2", "more.md", piped)],
            "d3": [Evidence(1, "c3", "d3", "prose.txt", "Nothing of that.")],
        }
    )
    schema = {"type": "array", "items": {"properties": {"team": {"type": "string"}, "wins": {"type": "integer"}}}}
    table, answer = await made(library, f"Extract from all documents: {json.dumps(schema)}")
    assert (table.body or {})["rows"] == [
        ["teams.csv", "Reds", 97],
        ["teams.csv", "Mets", 74],
        ["more.md", "Cubs", 61],
        ["more.md", "Twins", 66],
        ["prose.txt", None, None],
    ]
    quotes = {each.number: each.text[each.quote_start : each.quote_end] for each in table.citations}
    assert [quotes[item.citations[0]] for item in table.items] == [
        "Reds",
        "97",
        "Mets",
        "74",
        "Cubs",
        "61",
        "Twins",
        "66",
    ]
    assert answer.text == "8 of 10 values were found in 3 documents, in 5 rows. Nothing was found in prose.txt."


async def test_table_of_hundreds_of_documents_comes_in_parts_and_says_where_it_ends() -> None:
    events = await worked(DyingLog(), worker(invoices(500), ASKED.replace("date", "date, customer")))
    parts = [each.payload for each in events if isinstance(each.payload, Artefact)]
    (answer,) = [each.payload for each in events if isinstance(each.payload, Answer)]
    rows = [row for part in parts for row in (part.body or {})["rows"]]
    assert [part.artefact_id for part in parts] == ["rows", *(f"rows{number}" for number in range(2, len(parts) + 1))]
    assert len(parts) > 1
    assert [row[0] for row in rows] == [f"invoice-{number}.pdf" for number in range(1, len(rows) + 1)]
    assert len(answer.artefacts) == len(parts)
    assert any(
        "of 500 documents are in it." in each.payload.text for each in events if isinstance(each.payload, Thinking)
    )
    assert max(event_to_proto(each).ByteSize() for each in events) < 1_000_000


def test_table_of_two_columns_has_labels_and_values() -> None:
    page = Evidence(1, "c", "d", "n", "Item: Invoice No.; Entry: R-17\nItem: Total; Entry: 90.50 EUR")
    found = find_value(Field("total", "number"), labelled_values([page]))
    assert found is not None
    assert (found.value, page.text[found.start : found.end]) == (90.5, "90.50 EUR")
