"""Questions about streams that the Python client does not ask, or asks for the first page only."""

import asyncio
import json
from typing import Any

from nats.js.errors import APIError

from kit.errors import DataLoss
from kit.jetstream.connection import PATIENCE_S, Nats
from kit.jetstream.connection import REQUEST_TIMEOUT_S as LISTING_TIMEOUT_S
from kit.jetstream.failures import PASSING, translated_errors

API = "$JS.API"
REQUEST_TIMEOUT_S = 60.0
"""Much is asked for at once; a stream of many blocks takes its time."""
_PAUSE_S = 0.2


async def stream_names(nats: Nats) -> list[str]:
    """All streams of the account, by name."""
    names: list[str] = []
    with translated_errors("streams"):
        while True:
            answer = await api_request(nats, f"{API}.STREAM.NAMES", {"offset": len(names)}, "list")
            page = answer.get("streams") or []
            names += page
            if not page or len(names) >= answer["total"]:
                return sorted(names)


async def subject_counts(
    nats: Nats, stream: str, pattern: str, *, timeout_s: float = LISTING_TIMEOUT_S
) -> dict[str, int]:
    """How many messages each subject of a stream has, as its leader knows at one moment. Nothing stored is read for it. Raises
    Unavailable, DataLoss when there is no such stream."""
    counts: dict[str, int] = {}
    while True:
        answer = await _info(nats, stream, {"subjects_filter": pattern, "offset": len(counts)}, timeout_s)
        page = answer["state"].get("subjects")
        if not page or not page.keys() - counts.keys():
            return counts
        counts |= page


async def replica_count(nats: Nats, stream: str) -> int:
    """On how many servers a stream is kept. Raises as `subject_counts`."""
    return int((await _info(nats, stream, {}, REQUEST_TIMEOUT_S))["config"]["num_replicas"])


async def _info(nats: Nats, stream: str, request: dict[str, Any], longest_s: float) -> dict[str, Any]:
    """What the stream's leader says of it. Raises Unavailable, DataLoss with the server's words where it says no."""

    async def ask(timeout_s: float) -> dict[str, Any]:
        # A long listing takes longer than one try of other questions.
        is_long = any(wildcard in request.get("subjects_filter", "") for wildcard in "*>")
        wait_s = longest_s if is_long else timeout_s
        message = await nats.nc.request(f"{API}.STREAM.INFO.{stream}", json.dumps(request).encode(), timeout=wait_s)
        error = json.loads(message.data).get("error")
        if error and error.get("code", 0) >= 500:
            raise APIError.from_error(error)
        return checked(message.data, stream)

    return await nats.persist(f"stream {stream}", ask)


async def api_request(nats: Nats, subject: str, body: dict[str, Any], stream: str) -> dict[str, Any]:
    """One question to the server, which is asked again only when it says that it cannot answer now: it may be harmful to repeat.
    Raises DataLoss with its words when it says no, and what `translated_errors` translates."""
    clock = asyncio.get_running_loop().time
    give_up_at = clock() + PATIENCE_S
    while True:
        data = (await nats.nc.request(subject, json.dumps(body).encode(), timeout=REQUEST_TIMEOUT_S)).data
        error = json.loads(data).get("error")
        if not error or error.get("err_code") not in PASSING:
            return checked(data, stream)
        if clock() > give_up_at:
            raise APIError.from_error(error)
        await asyncio.sleep(_PAUSE_S)


def checked(data: bytes, stream: str) -> dict[str, Any]:
    """The server's answer. Raises DataLoss with its words when it is an error."""
    answer: dict[str, Any] = json.loads(data)
    if error := answer.get("error"):
        raise DataLoss(f"stream {stream}: the message store says: {error['description']}", reason="STREAM_REFUSED")
    return answer
