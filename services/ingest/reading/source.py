"""The bytes of a file that is read: on disk, or unpacked in memory. A parsing child may not write any."""

import gzip
import io
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

from services.ingest.errors import DocumentRejected

_MAX_UNPACKED_BYTES = 256 * 1024 * 1024
_MAX_RATIO = 250
"""Of unpacked to packed bytes. Logs reach 100; deflate cannot exceed 1 032, which bombs do reach."""
_RATIO_MATTERS_BYTES = 4 * 1024 * 1024
_STEP_BYTES = 1024 * 1024
_EXTENSIONS = {".gz": "", ".gzip": "", ".tgz": ".tar"}


class Source(Protocol):
    """What parsers need of a file. A Path is one."""

    def read_bytes(self) -> bytes:
        """All of it."""

    def open(self, mode: Literal["rb"]) -> BinaryIO:
        """From its beginning. To be closed."""


@dataclass(frozen=True)
class Unpacked:
    """A file that was packed in another."""

    name: str
    """As the packed file's name has it."""
    data: bytes
    is_whole: bool
    """False when the packed file was cut off or changed on its way, and this is what stands before that place."""

    def read_bytes(self) -> bytes:
        """See Source."""
        return self.data

    def open(self, mode: Literal["rb"]) -> BinaryIO:  # noqa: ARG002 - see Source
        """See Source."""
        return io.BytesIO(self.data)


def unpacked_gzip(source: Source, name: str) -> Unpacked:
    """What is packed by gzip (RFC 1952), within bounds. Raises DocumentRejected: ARCHIVE_BOMB, FILE_DAMAGED."""
    is_whole = True
    out = io.BytesIO()
    with source.open("rb") as file:
        packed_bytes = file.seek(0, io.SEEK_END)
        file.seek(0)
        try:
            with gzip.GzipFile(fileobj=file) as stream:
                while piece := stream.read1(_STEP_BYTES):  # gives what there is of a file that was cut off
                    out.write(piece)
                    _check_size(out.tell(), packed_bytes, name)
        except (EOFError, OSError, zlib.error) as error:
            is_whole = False
            if not out.tell():
                raise DocumentRejected(
                    "FILE_DAMAGED", f"{name} is damaged: it cannot be unpacked; pack the file again and upload that"
                ) from error
    return Unpacked(_inner_name(name), out.getvalue(), is_whole)


def _check_size(size_bytes: int, packed_bytes: int, name: str) -> None:
    ratio = size_bytes / max(packed_bytes, 1)
    if size_bytes > _MAX_UNPACKED_BYTES or (size_bytes > _RATIO_MATTERS_BYTES and ratio > _MAX_RATIO):
        raise DocumentRejected(
            "ARCHIVE_BOMB",
            f"{name} was not unpacked: it grows to more than {size_bytes // 1024**2} MiB. It is made to fill the memory of its "
            "reader, or too large to be read at once; upload the file itself, or split it",
        )


def _inner_name(name: str) -> str:
    path = Path(name)
    extension = _EXTENSIONS.get(path.suffix.lower())
    return name if extension is None or not path.stem else f"{path.stem}{extension}"
