"""What NATS servers say of themselves (/varz, /healthz, /jsz) as what the snapshot keeps of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from cli.cluster.api import Json
from cli.cluster.parsing import moment
from cli.cluster.snapshot import NatsServer, Stream, StreamPeer
from services.standalone.topology import NATS_FULL_DISK

PORT = 8222
STATE_PATH = "/jsz?accounts=true&streams=true&consumers=true&config=true"
_FULL_DISK = re.compile(NATS_FULL_DISK)
_EPOCH_YEAR = 1970


def server(pod: str, health: str, variables: str, state: str, log: str = "") -> NatsServer:
    """One server from its three pages and the end of its log. Raises ValueError for pages that are not of a NATS server."""
    healthz, varz, jsz = (_object(text) for text in (health, variables, state))
    meta: Json = jsz.get("meta_cluster") or {}
    name, leader = str(varz.get("server_name") or ""), str(meta.get("leader") or "")
    replicas: Sequence[Json] = meta.get("replicas") or []
    return NatsServer(
        pod=pod,
        name=name,
        version=str(varz.get("version") or ""),
        healthy=healthz.get("status") == "ok",
        health=str(healthz.get("error") or ""),
        is_meta_leader=bool(leader) and leader == name,
        meta_leader=leader,
        cluster_size=int(meta.get("cluster_size") or 1),
        offline=tuple(str(each["name"]) for each in replicas if each.get("offline")),
        behind=tuple(str(each["name"]) for each in replicas if not each.get("current") and not each.get("offline")),
        storage_bytes=int(jsz.get("storage") or 0),
        storage_limit_bytes=int((jsz.get("config") or {}).get("max_storage") or 0),
        disk_full=next((line.strip() for line in reversed(log.splitlines()) if _FULL_DISK.search(line)), ""),
    )


def streams(states: Mapping[str, str]) -> list[Stream]:
    """All streams by what their leaders say; of one without a leader what any server says. `states`: /jsz by server's name."""
    found: dict[str, Stream] = {}
    for server_name, text in states.items():
        for detail in _details(_object(text)):
            stream = _stream(detail)
            if stream.leader in {server_name, ""} or stream.name not in found:
                found[stream.name] = stream
    return sorted(found.values(), key=lambda each: each.name)


def _details(jsz: Json) -> Iterable[Json]:
    for account in jsz.get("account_details") or ():
        yield from account.get("stream_detail") or ()


def _stream(detail: Json) -> Stream:
    config, state, cluster = (detail.get(key) or {} for key in ("config", "state", "cluster"))
    consumers: Sequence[Json] = detail.get("consumer_detail") or []
    return Stream(
        name=str(detail["name"]),
        replicas=int(config.get("num_replicas") or 1),
        leader=str(cluster.get("leader") or ""),
        peers=tuple(
            StreamPeer(str(each["name"]), bool(each.get("current")), bool(each.get("offline")))
            for each in cluster.get("replicas") or ()
        ),
        messages=int(state.get("messages") or 0),
        size_bytes=int(state.get("bytes") or 0),
        is_queue=config.get("retention") == "workqueue",
        in_hand=sum(int(each.get("num_ack_pending") or 0) for each in consumers),
        oldest_at=_first_at(state),
    )


def _first_at(state: Json) -> datetime | None:
    """When the oldest message came; None of an empty stream, which says the year 1."""
    first = moment(re.sub(r"(\.\d{6})\d+", r"\1", str(state.get("first_ts") or "")))
    return first if first is not None and first.year >= _EPOCH_YEAR and state.get("messages") else None


def _object(text: str) -> Json:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - it is text that somebody sent
    return value
