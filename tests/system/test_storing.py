"""What is decided before a file is stored, and in which order stored files are read: by a scanner, a quota and lanes of a running
system, from outside."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from kit.testing.harness import free_port
from tests.doubles.clamd import EICAR, Clamd
from tests.in_a_thread import in_a_thread
from tests.integration.api import Api
from tests.integration.system import Groundwork, running, wait_until

pytestmark = [pytest.mark.integration]

QUOTA_BYTES = 300_000
BULK = 60
PORT = free_port()


@asynccontextmanager
async def clamd() -> AsyncIterator[None]:
    async with await asyncio.start_server(Clamd().serve, "127.0.0.1", PORT):
        yield


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Groundwork]:
    settings = {
        "GROUNDWORK_SCANNER": f"127.0.0.1:{PORT}",
        "GROUNDWORK_STORAGE_QUOTA_BYTES": str(QUOTA_BYTES),
    }
    folder = tmp_path_factory.mktemp("storing")
    with running(Groundwork(folder / "data", models_dir.absolute(), settings)) as started:
        yield started


def _reason(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["reason"]


def test_scanner_decides_before_a_file_is_stored_and_nothing_is_while_it_is_away(system: Groundwork) -> None:
    with Api.open(system.base_url) as api:
        collection = api.new_collection()
        with in_a_thread(clamd()):
            api.ingest(collection, "clean.txt", b"High water is at four.")
            infected = api.send(collection, "invoice.txt", EICAR.encode())
        away = api.send(collection, "later.txt", b"Low water is at ten.")
        assert _reason(infected) == (422, "FILE_INFECTED")
        assert _reason(away) == (503, "SCANNER_UNAVAILABLE")
        names = [each["name"] for each in api.get(f"/v1/collections/{collection}/documents")["documents"]]
        assert names == ["clean.txt"]


def _storage(api: Api) -> dict[str, Any]:
    """The limit of what the tenant stores, as its user sees it."""
    return next(each for each in api.get("/v1/limits")["limits"] if each["limit"]["what"] == "storage")


def test_upload_beyond_the_quota_is_refused_until_something_is_deleted(system: Groundwork) -> None:
    with in_a_thread(clamd()), Api.open(system.base_url) as api:
        collection = api.new_collection()
        large = api.upload(collection, "large.txt", b"The tide turns. " * (QUOTA_BYTES // 20))
        refused = api.send(collection, "more.txt", b"The crane is red. " * (QUOTA_BYTES // 20))
        assert _reason(refused) == (507, "STORAGE_QUOTA_EXCEEDED")
        assert (refused.json()["limit"], refused.json()["whose"]) == ("storage", "tenant")
        api.settled(large["id"])
        rule = {"what": "storage", "amount": 2 * QUOTA_BYTES, "per": "ever"}
        assert api.http.put("/v1/limits/rules/tenant:*", json={"limits": [rule]}).is_success
        wait_until(lambda: _storage(api)["limit"] == rule, "the rule to hold")
        more = api.upload(collection, "more.txt", b"The crane is red. " * (QUOTA_BYTES // 20))
        api.settled(more["id"])
        assert api.http.put("/v1/limits/rules/tenant:*", json={"limits": []}).is_success
        wait_until(lambda: _storage(api)["limit"]["amount"] == QUOTA_BYTES, "the setting to hold again")
        refused = api.send(collection, "small.txt", b"The horn is blue.")
        assert (refused.json()["limit"], refused.json()["used"]) == ("storage", str(int(_storage(api)["used"])))
        assert all(api.http.delete(f"/v1/documents/{each['id']}").is_success for each in (large, more))
        api.ingest(collection, "small.txt", b"The horn is blue.")


def test_single_upload_is_ready_before_an_import_that_began_earlier(system: Groundwork) -> None:
    with in_a_thread(clamd()), Api.open(system.base_url) as api:
        collection = api.new_collection()
        path = f"/v1/collections/{collection}/documents"
        imported = [
            api.http.post(
                path, data={"lane": "bulk"}, files={"file": (f"{n}.txt", f"Valve {n} is tight. ".encode() * 160)}
            )
            for n in range(BULK)
        ]
        assert {each.status_code for each in imported} == {202}, imported[-1].text
        api.ingest(collection, "single.txt", b"The horn is blue.")
        documents = api.get(path, page_size=100)["documents"]
        assert any(each["status"] not in ("ready", "failed") for each in documents)
        last = [api.settled(each.json()["document"]["id"]) for each in imported]
        assert {each["status"] for each in last} == {"ready"}
