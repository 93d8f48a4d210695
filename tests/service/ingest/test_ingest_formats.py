"""Office files, exports and bad files through the API, the worker and its parsing child."""

import asyncio
import json

from groundwork.ingest.v1 import ingest_pb2

from tests.service.ingest.conftest import System
from tests.unit.ingest.malformed import bad_files
from tests.unit.ingest.malformed.good import good_files
from tests.unit.ingest.office_files import docx_of, paragraph, pptx_of, shape, xlsx_of

READY, FAILED = ingest_pb2.DOCUMENT_STATUS_READY, ingest_pb2.DOCUMENT_STATUS_FAILED
BAD = (
    "bomb-body.docx", "overlapping.docx", "laughs.docx", "password.xlsx", "old.doc", "cut-60.pptx", "nested-div.html",
    "kids-only-itself.pdf", "nested-objects.json", "marks.txt", "nuls.txt", "empty-archive.epub",
)  # fmt: skip


async def test_office_files_become_searchable_with_their_structure(system: System) -> None:
    files = {
        "letter.docx": docx_of(paragraph("Ferries", "H1") + paragraph("They leave at seven.")),
        "talk.pptx": pptx_of([shape(["Ferries"], "title"), shape(["Slide two speaks of guests."])]),
        "table.xlsx": xlsx_of([["Ship", "Guests"], ["Wega", "many"]]),
    }
    async with system.worker():
        queued = [await system.upload(data, name) for name, data in files.items()]
        letter, talk, table = [await system.until(each.document_id, READY, FAILED) for each in queued]
    assert [list(chunk.heading_path) for chunk in system.retriever.searchable(letter.document_id)] == [["Ferries"]]
    assert [chunk.page for chunk in system.retriever.searchable(talk.document_id)] == [1, 2]
    assert talk.report.page_count == 2
    assert [chunk.text for chunk in system.retriever.searchable(table.document_id)] == [
        "Data\n\nShip: Wega; Guests: many"
    ]


async def test_files_that_need_further_libraries_are_read_in_the_sandbox(system: System) -> None:
    files = {name: data for name, data in good_files().items() if name.endswith((".msg", ".rtf", ".ods", ".gz"))}
    async with system.worker():
        queued = [await system.upload(data, name) for name, data in files.items()]
        ended = [await system.until(each.document_id, READY, FAILED) for each in queued]
    assert {document.name: document.status for document in ended} == dict.fromkeys(files, READY)


async def test_fields_of_a_message_reach_the_index_beside_those_of_its_document(system: System) -> None:
    message = {"id": 5, "type": "message", "date_unixtime": "1705311000", "from": "Anna", "text": "The ferry is late."}
    export = {"name": "Harbour", "type": "private_group", "id": 1, "messages": [message]}
    async with system.worker():
        queued = await system.upload(
            json.dumps(export).encode(), "result.json", metadata={"team": "blue", "author": "export"}
        )
        done = await system.until(queued.document_id, READY, FAILED)
    (chunk,) = system.retriever.searchable(done.document_id)
    assert dict(chunk.metadata) == {
        "team": "blue",
        "author": "Anna",
        "channel": "Harbour",
        "date": "2024-01-15T09:30:00Z",
        "message_id": "5",
    }


async def test_worker_outlives_bad_files_and_serves_good_ones_after_them(system: System) -> None:
    cases = [case for case in bad_files() if case.name in BAD]
    assert len(cases) == len(BAD)
    async with system.worker():
        queued = [await system.upload(await asyncio.to_thread(case.make), case.name) for case in cases]
        ended = [await system.until(each.document_id, READY, FAILED) for each in queued]
        good = await system.upload(b"The ferry leaves at seven.", "good.txt")
        assert (await system.until(good.document_id, READY, FAILED)).status == READY
    for case, document in zip(cases, ended, strict=True):
        assert document.report.attempts == 1, "a bad file is not tried again"
        if case.reason:
            assert (document.status, document.error.reason) == (FAILED, case.reason), case.name
        else:
            assert document.status == READY, document.error
