"""The multipart parser: the same form whatever pieces it comes in, with the size its sender announced."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.gateway.errors import BadForm, UploadStalled
from services.gateway.serving.multipart import PIECE_BYTES, MultipartForm

BOUNDARY = "frontier"
CONTENT_TYPE = f"multipart/form-data; boundary={BOUNDARY}"


def body_of(content: bytes, *, name: str = "a.txt", end: str = "\r\n") -> bytes:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: text/plain\r\n\r\n'
    return head.encode() + content + f"\r\n--{BOUNDARY}--{end}".encode()


async def pieces_of(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def form_of(body: bytes, cut_bytes: int = 1 << 20, *, length_known: bool = True) -> MultipartForm:
    chunks = [body[start : start + cut_bytes] for start in range(0, len(body), cut_bytes)]
    length = len(body) if length_known else None
    return MultipartForm(pieces_of(chunks), CONTENT_TYPE, content_length=length, idle_timeout_s=5)


@given(
    st.lists(st.sampled_from([b"\r\n", b"--", b"frontier", b"\r", b"\n", b"-", b"x"]), max_size=20), st.integers(1, 40)
)
async def test_content_and_size_do_not_depend_on_the_cut(parts: list[bytes], cut_bytes: int) -> None:
    content = b"".join(parts).replace(b"\r\n--frontier", b"")
    form = form_of(body_of(content), cut_bytes)
    await form.open()
    assert form.declared_size_bytes == len(content)
    assert b"".join([piece async for piece in form.pieces()]) == content
    form.check_size()


async def test_pieces_are_bounded_however_large_what_arrives() -> None:
    form = form_of(body_of(bytes(3 * PIECE_BYTES + 1)), 1 << 30)
    await form.open()
    assert [len(piece) async for piece in form.pieces()] == [PIECE_BYTES] * 3 + [1]


async def test_form_that_trickles_is_given_up() -> None:
    async def trickle() -> AsyncIterator[bytes]:
        for start in range(len(body)):
            await asyncio.sleep(0.01)
            yield body[start : start + 1]

    body = body_of(bytes(10_000))
    form = MultipartForm(trickle(), CONTENT_TYPE, content_length=None, idle_timeout_s=0.1)
    with pytest.raises(UploadStalled):
        await form.open()


async def test_form_that_waits_for_its_reader_does_not_trickle() -> None:
    form = form_of(body_of(bytes(PIECE_BYTES + 10)), PIECE_BYTES)
    form._idle_timeout_s = 0.05
    await form.open()
    async for _ in form.pieces():
        await asyncio.sleep(0.1)  # a slow ingest


async def test_size_is_unknown_without_a_content_length() -> None:
    form = form_of(body_of(bytes(1000)), 100, length_known=False)
    await form.open()
    assert form.declared_size_bytes == 0


async def test_size_of_a_small_form_is_exact_without_the_last_line_break() -> None:
    form = form_of(body_of(b"hello", end=""))
    await form.open()
    assert form.declared_size_bytes == 5


async def test_form_that_goes_on_after_its_end_is_explained_when_its_size_was_doubted() -> None:
    form = form_of(body_of(bytes(1000), end=""), 100)
    await form.open()
    assert sum([len(piece) async for piece in form.pieces()]) == 1000
    with pytest.raises(BadForm, match="closing boundary"):
        form.check_size()


@pytest.mark.parametrize(
    ("sent", "meant"),
    [("a.txt", "a.txt"), ("naïve – 日本.md", "naïve – 日本.md"), ("a %22b%22.txt", 'a "b".txt')],
)
async def test_file_names_are_read_as_browsers_write_them(sent: str, meant: str) -> None:
    form = form_of(body_of(b"x", name=sent))
    await form.open()
    assert form.file_name == meant


@pytest.mark.parametrize("lane", ["interactive", "bulk"])
async def test_lane_of_the_upload_comes_before_the_file(lane: str) -> None:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="lane"\r\n\r\n{lane}\r\n'.encode()
    form = form_of(head + body_of(b"words"))
    await form.open()
    assert form.lane == lane


async def test_unknown_lane_is_refused_with_those_that_there_are() -> None:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="lane"\r\n\r\nfast\r\n'.encode()
    with pytest.raises(BadForm, match="interactive, bulk"):
        await form_of(head + body_of(b"words")).open()


async def test_encoding_of_the_file_comes_before_it() -> None:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="encoding"\r\n\r\niso-8859-2\r\n'.encode()
    form = form_of(head + body_of(b"words"))
    await form.open()
    assert form.encoding == "iso-8859-2"
    assert [piece async for piece in form.pieces()] == [b"words"]


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ("filename=\"=?utf-8?B?5oql5ZGKLnR4dA==?=\"; filename*=UTF-8''%E6%8A%A5%E5%91%8A.txt", "报告.txt"),
        ("filename*=UTF-8''%E6%8A%A5%E5%91%8A.txt", "报告.txt"),
        ("filename*=iso-8859-1'de'Gr%FC%DFe.txt; filename=x.txt", "Grüße.txt"),
        ('filename="=?utf-8?B?5oql5ZGKLnR4dA==?="', "报告.txt"),
        ('filename="=?iso-8859-1?Q?Gr=FC=DFe.txt?="', "Grüße.txt"),
        ("filename=\"a; filename*=UTF-8''b.txt\"", "a; filename*=UTF-8''b.txt"),
        ("filename=\"plain.txt\"; filename*=no-such-charset''%FF", "plain.txt"),
        ('filename="why =?.txt"', "why =?.txt"),
    ],
)
async def test_file_name_is_read_as_its_sender_wrote_it(parameters: str, name: str) -> None:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; {parameters}\r\n\r\n'
    form = form_of(head.encode() + f"words\r\n--{BOUNDARY}--\r\n".encode())
    await form.open()
    assert form.file_name == name
