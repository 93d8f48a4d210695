"""What the model server keeps of a text goes with the text, in a system as a user runs it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.api import Api
from tests.integration.system import Groundwork, running, wait_until

pytestmark = pytest.mark.integration


def kept(system: Groundwork) -> set[bytes]:
    """Keys of the texts whose token vectors are on the disk."""
    store = system.data_dir / "reranker" / "passages.sqlite"
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        return {key for (key,) in connection.execute("SELECT key FROM passages")}


def paragraphs(*numbers: int) -> bytes:
    """Each makes a chunk of its own."""
    return "\n\n".join(f"Buoy {number} was painted by crew {number * 7}. " * 40 for number in numbers).encode()


def test_token_vectors_go_with_the_text_that_is_replaced_or_deleted(tmp_path: Path, models_dir: Path) -> None:
    # A system of its own: in a shared one, other tests' texts come and go.
    with running(Groundwork(tmp_path / "data", models_dir.absolute())) as system, Api.open(system.base_url) as api:
        collection = api.new_collection()
        api.ingest(collection, "buoys.txt", paragraphs(1, 2, 3))
        wait_until(lambda: len(kept(system)) >= 3, "token vectors of the document are on the disk")
        first = kept(system)
        document = api.ingest(collection, "buoys.txt", paragraphs(1, 2, 4))
        wait_until(lambda: not first <= kept(system), "those of the replaced text are gone")
        assert first & kept(system), "those of the text that stayed are there"
        api.http.delete(f"/v1/documents/{document['id']}").raise_for_status()
        wait_until(lambda: not kept(system), "those of the deleted document are gone")
