"""What NATS servers say of themselves is read as it is: the pages are those of nats-server 2.15."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from cli.cluster import nats_state
from cli.cluster.snapshot import StreamPeer

VARZ = {"server_name": "nats-0", "version": "2.15.1"}
META = {
    "leader": "nats-0",
    "cluster_size": 3,
    "replicas": [
        {"name": "nats-1", "current": True, "active": 1},
        {"name": "nats-2", "current": False, "offline": True, "active": 1},
    ],
}


def stream(name: str, leader: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "config": {"num_replicas": 3, "retention": "workqueue"},
        "state": {"messages": 5, "bytes": 700, "first_ts": "2026-11-23T11:59:58.123456789Z"},
        "cluster": {"leader": leader, "replicas": [{"name": "nats-1", "current": True}]},
        "consumer_detail": [{"num_ack_pending": 2}, {"num_ack_pending": 1}],
        **changes,
    }


def page(*streams: dict[str, Any], **changes: Any) -> str:
    said = {"storage": 1000, "config": {"max_storage": 4000}, "meta_cluster": META}
    return json.dumps({**said, "account_details": [{"name": "$G", "stream_detail": list(streams)}], **changes})


def test_a_server_tells_how_it_and_its_cluster_are() -> None:
    server = nats_state.server("pod-0", '{"status": "ok"}', json.dumps(VARZ), page())
    assert (server.name, server.version, server.healthy, server.is_meta_leader) == ("nats-0", "2.15.1", True, True)
    assert (server.offline, server.behind) == (("nats-2",), ())
    assert (server.storage_bytes, server.storage_limit_bytes) == (1000, 4000)


def test_a_server_that_is_not_well_says_why() -> None:
    server = nats_state.server("pod-0", '{"status": "unavailable", "error": "no quorum"}', json.dumps(VARZ), page())
    assert (server.healthy, server.health) == (False, "no quorum")


@pytest.mark.parametrize(
    ("line", "is_full"),
    [
        ("[7] [ERR] JetStream failed to store a msg: write /data/msgs/1.blk: no space left on device", True),
        ("[7] [ERR] JetStream out of File resources, will be DISABLED", True),
        ("[7] [INF] Server is ready", False),
    ],
)
def test_a_write_without_room_is_found_in_the_log(line: str, is_full: bool) -> None:
    log = f"[7] [INF] Starting\n{line}\n[7] [INF] goes on"
    server = nats_state.server("pod-0", '{"status": "ok"}', json.dumps(VARZ), page(), log)
    assert (server.disk_full == line) is is_full


def test_a_stream_is_as_its_leader_says() -> None:
    states = {
        "nats-1": page(stream("INGEST", "nats-0", state={"messages": 1})),
        "nats-0": page(stream("INGEST", "nats-0")),
        "nats-2": page(stream("INGEST", "nats-0", state={"messages": 2})),
    }
    (found,) = nats_state.streams(states)
    assert (found.messages, found.in_hand, found.is_queue, found.replicas) == (5, 3, True, 3)
    assert found.oldest_at == datetime(2026, 11, 23, 11, 59, 58, 123456, tzinfo=UTC)
    assert found.peers == (StreamPeer("nats-1", current=True),)


def test_an_empty_stream_has_no_oldest_message() -> None:
    empty = stream("INGEST", "nats-0", state={"messages": 0, "first_ts": "0001-01-01T00:00:00Z"})
    (found,) = nats_state.streams({"nats-0": page(empty)})
    assert found.oldest_at is None


@pytest.mark.parametrize("text", ["", "not found", "[1]"])
def test_what_is_no_page_of_nats_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        nats_state.server("pod-0", text, text, text)
