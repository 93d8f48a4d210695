"""Uploads: streamed at the pace of ingest, whole or not at all."""

import asyncio
import resource
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest

from kit.errors import InvalidArgument, NotFound
from services.ingest.errors import DocumentChanged
from tests.service.gateway.conftest import Live, World

PATH = "/v1/collections/default/documents"
BOUNDARY = "frontier"
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def part(field: str, value: bytes, file_name: str | None = None) -> bytes:
    name = f'; filename="{file_name}"' if file_name is not None else ""
    return f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{field}"{name}\r\n\r\n'.encode() + value + b"\r\n"


END = f"--{BOUNDARY}--\r\n".encode()


async def test_file_is_taken_with_its_name_size_and_metadata(client: httpx.AsyncClient, world: World) -> None:
    answer = await client.post(
        PATH, files={"file": ("naïve.md", b"hello world")}, data={"metadata": '{"year": "2026"}'}
    )
    assert answer.status_code == 202
    assert answer.json()["document"]["status"] == "queued"
    header = world.ingest.headers[0]
    assert (header.name, header.size_bytes, dict(header.metadata)) == ("naïve.md", 11, {"year": "2026"})
    assert header.collection_id == "default"
    assert world.ingest.received_bytes == 11


@pytest.mark.parametrize(
    ("headers", "replaces"),
    [
        ({}, None),
        ({"If-None-Match": "*"}, ""),
        ({"If-Match": "ab" * 32}, "ab" * 32),
        ({"If-Match": f'"{"cd" * 32}"'}, "cd" * 32),
    ],
)
async def test_upload_says_which_version_it_replaces(
    client: httpx.AsyncClient, world: World, headers: dict[str, str], replaces: str | None
) -> None:
    answer = await client.post(PATH, files={"file": ("a.md", b"hello")}, headers=headers)
    assert answer.status_code == 202
    header = world.ingest.headers[0]
    assert (header.replaces_sha256 if header.HasField("replaces_sha256") else None) == replaces


async def test_upload_that_replaces_another_version_is_answered_with_412(
    client: httpx.AsyncClient, world: World
) -> None:
    world.ingest.refuse_after_header = DocumentChanged("a.md has another content")
    answer = await client.post(PATH, files={"file": ("a.md", b"hello")}, headers={"If-Match": "ab" * 32})
    assert (answer.status_code, answer.json()["reason"]) == (412, "DOCUMENT_CHANGED")
    assert (await client.post(PATH, files={"file": ("a.md", b"x")}, headers={"If-Match": "ab"})).status_code == 400


async def test_empty_file_is_passed_on_for_ingest_to_judge(client: httpx.AsyncClient, world: World) -> None:
    assert (await client.post(PATH, files={"file": ("empty.txt", b"")})).status_code == 202
    assert (world.ingest.received_bytes, world.ingest.headers[0].size_bytes) == (0, 0)


async def test_boundary_look_alikes_in_the_file_survive_any_cut(live: Live, world: World) -> None:
    content = b"\r\n--frontie\r\n--frontier-\r\n\r\n--" * 50
    body = part("file", content, "tricky.txt") + END

    async def drops() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 7):
            yield body[start : start + 7]

    async with live() as client:
        assert (await client.post(PATH, content=drops(), headers=FORM)).status_code == 202
    assert world.ingest.received_bytes == len(content)


async def test_large_upload_is_never_held_in_memory(live: Live, world: World) -> None:
    size_bytes = 64 * 1024 * 1024
    block = bytes(1024 * 1024)

    async def body() -> AsyncIterator[bytes]:
        yield part("file", b"", "large.txt")[:-2]
        for _ in range(size_bytes // len(block)):
            yield block
        yield b"\r\n" + END

    async with live() as client:
        await client.post(PATH, files={"file": ("warm.txt", b"up")})
        before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answer = await client.post(PATH, content=body(), headers=FORM)
        grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    assert answer.status_code == 202
    assert world.ingest.received_bytes == size_bytes + 2
    assert world.ingest.largest_piece <= 1024 * 1024
    # Client, gateway and ingest share this process, each with its own buffers; the file itself is four times as large.
    assert grown_kib < 16 * 1024


async def test_slow_ingest_holds_the_client_back(live: Live, world: World) -> None:
    world.ingest.hold.clear()
    sent = 0

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent
        yield part("file", b"", "slow.txt")[:-2]
        for _ in range(64):
            sent += 1
            yield bytes(1024 * 1024)
        yield b"\r\n" + END

    async with live() as client:
        upload = asyncio.create_task(client.post(PATH, content=body(), headers=FORM))
        seen = -1
        while sent != seen or sent == 0:  # until nothing moves any more
            seen = sent
            await asyncio.sleep(0.1)
        assert sent < 48
        world.ingest.hold.set()
        assert (await upload).status_code == 202


@dataclass(frozen=True)
class BadForm:
    body: bytes
    reason: str
    content_type: str = FORM["Content-Type"]
    status: int = 400


@pytest.mark.parametrize(
    "case",
    [
        BadForm(END, "FILE_FIELD_MISSING"),
        BadForm(part("metadata", b"{}") + END, "FILE_FIELD_MISSING"),
        BadForm(b"", "MALFORMED_MULTIPART"),
        BadForm(b"this is no form", "MALFORMED_MULTIPART"),
        BadForm(part("file", b"cut off", "a.txt"), "MALFORMED_MULTIPART"),
        BadForm(part("file", b"x", "a.txt") + part("file", b"y", "b.txt") + END, "BAD_FORM"),
        BadForm(part("file", b"x", "a.txt") + part("metadata", b"{}") + END, "BAD_FORM"),
        BadForm(part("file", b"no name") + END, "BAD_FORM"),
        BadForm(part("document", b"x", "a.txt") + END, "BAD_FORM"),
        BadForm(part("metadata", b"[1]") + part("file", b"x", "a.txt") + END, "BAD_FORM"),
        BadForm(part("metadata", b'{"a": 1}') + part("file", b"x", "a.txt") + END, "BAD_FORM"),
        BadForm(part("metadata", b'{"a": "\\ud800"}') + part("file", b"x", "a.txt") + END, "BAD_FORM"),
        BadForm(part("metadata", b"x" * 70_000) + part("file", b"x", "a.txt") + END, "BAD_FORM"),
        BadForm(b"{}", "UNSUPPORTED_CONTENT_TYPE", "application/json", 415),
        BadForm(b"{}", "UNSUPPORTED_CONTENT_TYPE", "", 415),
        BadForm(b"x", "MALFORMED_MULTIPART", "multipart/form-data"),
        BadForm(b"x", "MALFORMED_MULTIPART", f"multipart/form-data; boundary={'b' * 300}"),
    ],
    ids=lambda case: f"{case.reason}-{len(case.body)}",
)
async def test_bad_form_is_refused_and_nothing_is_stored(
    client: httpx.AsyncClient, world: World, case: BadForm
) -> None:
    answer = await client.post(PATH, content=case.body, headers={"Content-Type": case.content_type})
    assert (answer.status_code, answer.json()["reason"]) == (case.status, case.reason)
    assert world.ingest.committed == 0


async def test_client_that_hangs_up_leaves_no_document(live: Live, world: World) -> None:
    begun = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield part("file", b"half a ", "half.txt")[:-2]
        begun.set()
        await asyncio.Event().wait()

    async with live() as client:
        upload = asyncio.create_task(client.post(PATH, content=body(), headers=FORM))
        await begun.wait()
        while not world.ingest.headers:
            await asyncio.sleep(0.01)
        upload.cancel()
        await asyncio.gather(upload, return_exceptions=True)
        await asyncio.wait_for(world.ingest.aborted.wait(), 60)
    assert world.ingest.committed == 0


async def test_client_that_stops_sending_is_told(live: Live, world: World) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield part("file", b"half a ", "half.txt")[:-2]
        await asyncio.sleep(3)

    async with live(upload_idle_timeout_s=0.2) as client:
        answer = await client.post(PATH, content=body(), headers={**FORM, "Connection": "close"})
    assert (answer.status_code, answer.json()["reason"]) == (408, "UPLOAD_STALLED")
    assert world.ingest.committed == 0


async def test_early_refusal_reaches_a_client_that_is_still_sending(live: Live, world: World) -> None:
    world.ingest.refuse_after_header = InvalidArgument("the file is over 100 MB", reason="FILE_TOO_LARGE")
    async with live() as client:
        answer = await client.post(PATH, files={"file": ("large.txt", bytes(8 * 1024 * 1024))})
    assert (answer.status_code, answer.json()["reason"]) == (413, "FILE_TOO_LARGE")


async def test_unknown_collection_is_404(client: httpx.AsyncClient, world: World) -> None:
    world.ingest.refuse_after_header = NotFound("there is no collection nope", reason="COLLECTION_NOT_FOUND")
    answer = await client.post("/v1/collections/nope/documents", files={"file": ("a.txt", b"x")})
    assert (answer.status_code, answer.json()["reason"]) == (404, "COLLECTION_NOT_FOUND")
