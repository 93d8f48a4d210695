"""Sources over HTTP."""

import httpx

from tests.service.gateway.conftest import World

NEW = {
    "kind": "folder",
    "settings": {"folder": "contracts", "only": "*.pdf"},
    "secrets": {"key": "s3cret"},
    "every_s": 600,
}


async def test_source_is_made_shown_changed_run_and_removed(client: httpx.AsyncClient, world: World) -> None:
    made = await client.post("/v1/sources", json=NEW)
    assert made.status_code == 201
    assert made.headers["location"] == "/v1/sources/5d0c7be9f2c1"
    asked = world.ingest.source_requests[-1]
    assert (asked.kind, asked.collection_id, dict(asked.settings)) == ("folder", "default", NEW["settings"])
    assert (dict(asked.secrets), asked.every.seconds) == ({"key": "s3cret"}, 600)
    path = made.headers["location"]
    shown = (await client.get(path)).json()
    assert "s3cret" not in str(shown)
    assert (shown["state"], shown["every_s"], shown["secret_names"]) == ("syncing", 600, ["key"])
    assert (shown["sync"]["done_count"], shown["sync"]["remaining_s"], shown["error"]) == (1, 3, None)
    assert shown["failing"] == [
        {"path": "a.pdf", "reason": "FILE_UNREADABLE", "message": "it cannot be read", "document_id": None}
    ]
    listed = (await client.get("/v1/sources", params={"collection_id": "papers"})).json()["sources"]
    assert [each["id"] for each in listed] == ["5d0c7be9f2c1"]
    assert world.ingest.source_requests[-1].collection_id == "papers"
    assert (await client.patch(path, json={"paused": False})).status_code == 200
    changed = world.ingest.source_requests[-1]
    assert changed.HasField("paused")
    assert not changed.HasField("every")
    assert not changed.HasField("secrets")
    assert (await client.post(f"{path}/run", json={"accept_empty": True})).status_code == 202
    assert world.ingest.source_requests[-1].accept_empty
    assert (await client.delete(path)).status_code == 202
    gone = await client.get(path)
    assert (gone.status_code, gone.json()["reason"]) == (404, "SOURCE_NOT_FOUND")
