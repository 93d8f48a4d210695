"""What is kept of a text besides the text itself goes with it, in a system as a user runs it: token vectors of the model server,
and the bytes in the files of the indexes and of the message store."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.integration.api import Api
from tests.integration.system import Groundwork, running, wait_until

pytestmark = pytest.mark.integration

FACT, THREAD, DOCUMENT, KEPT = "zqvorluxburg", "kwyjimandel", "vlonkmeister", "xanthoport"
"""Words that nothing else holds, and that stand in a compressed file as they are: nothing before them is like them."""


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Groundwork]:
    """A system of its own: in a shared one, other tests' texts come and go."""
    folder = tmp_path_factory.mktemp("forgotten")
    with running(Groundwork(folder / "data", models_dir.absolute())) as groundwork:
        yield groundwork


@pytest.fixture
def api(system: Groundwork) -> Iterator[Api]:
    with Api.open(system.base_url) as client:
        yield client


def kept(system: Groundwork) -> set[bytes]:
    """Keys of the texts whose token vectors are on the disk."""
    store = system.data_dir / "reranker" / "passages.sqlite"
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        return {key for (key,) in connection.execute("SELECT key FROM passages")}


def paragraphs(*numbers: int) -> bytes:
    """Each makes a chunk of its own."""
    return "\n\n".join(f"Buoy {number} was painted by crew {number * 7}. " * 40 for number in numbers).encode()


def files_with(system: Groundwork, *words: str, below: str = "") -> set[str]:
    """The words that a file of the system holds: indexes, the blocks of the message store, all else in the folder of its data."""
    found = set()
    for folder, _, names in os.walk(system.data_dir / below):  # passes over what goes meanwhile
        for name in names:
            with suppress(FileNotFoundError):
                content = Path(folder, name).read_bytes()
                found |= {word for word in words if word.encode() in content}
    return found


def test_no_file_has_a_text_that_was_forgotten(system: Groundwork, api: Api) -> None:
    collection = api.new_collection()
    ferry = api.ingest(collection, "kept.txt", f"The ferry sails to {KEPT}.".encode())
    document = api.ingest(collection, "gone.txt", f"The key is {DOCUMENT}.".encode())
    said = {}
    for word, message in ((FACT, "I live in {}."), (THREAD, "I work as a {}."), (KEPT, "I am allergic to {}.")):
        said[word] = api.post("/v1/threads", {})["id"]
        api.converse_json(message.format(word), thread_id=said[word])
    words = (FACT, THREAD, DOCUMENT, KEPT)
    wait_until(lambda: len(api.get("/v1/memory/facts")["facts"]) == 3, "all facts are learnt")
    wait_until(lambda: files_with(system, *words, below="retriever") == set(words), "all texts are in the indexes")
    api.http.delete(f"/v1/documents/{document['id']}").raise_for_status()
    assert api.post("/v1/memory/forget", {"text": FACT})["forgotten"] == 1
    api.http.delete(f"/v1/threads/{said[FACT]}").raise_for_status()
    api.http.delete(f"/v1/threads/{said[THREAD]}?forget=true").raise_for_status()
    wait_until(lambda: files_with(system, *words) == {KEPT}, "no file has what was forgotten")
    assert [KEPT in fact["text"] for fact in api.get("/v1/memory/facts")["facts"]] == [True]
    assert KEPT in str(api.search(collection, "Where does the ferry sail to?"))
    api.http.delete(f"/v1/documents/{ferry['id']}").raise_for_status()  # the next test wants no token vectors of others


def test_token_vectors_go_with_the_text_that_is_replaced_or_deleted(system: Groundwork, api: Api) -> None:
    collection = api.new_collection()
    api.ingest(collection, "buoys.txt", paragraphs(1, 2, 3))
    wait_until(lambda: len(kept(system)) >= 3, "token vectors of the document are on the disk")
    first = kept(system)
    document = api.ingest(collection, "buoys.txt", paragraphs(1, 2, 4))
    wait_until(lambda: not first <= kept(system), "those of the replaced text are gone")
    assert first & kept(system), "those of the text that stayed are there"
    api.http.delete(f"/v1/documents/{document['id']}").raise_for_status()
    wait_until(lambda: not kept(system), "those of the deleted document are gone")
