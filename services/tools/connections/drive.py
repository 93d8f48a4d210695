"""What tools ask of Google Drive: which files there are, and one of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from services.tools.connections.records import Connection
from services.tools.errors import ToolError

TIMEOUT_S = 20.0
_ID = re.compile(r"[A-Za-z0-9_-]{3,200}")
_LINK = re.compile(r"https://[a-z]+\.google\.com/(?:\S*/)?(?:d|folders)/([A-Za-z0-9_-]{3,200})(?:[/?#]\S*)?")
_LINK_WITH_ID = re.compile(r"https://[a-z]+\.google\.com/\S*[?&]id=([A-Za-z0-9_-]{3,200})(?:[&#]\S*)?")


class DriveFailed(ToolError):
    """Google Drive did not do what was asked."""

    reason = "DRIVE_FAILED"


@dataclass(frozen=True)
class DriveFile:
    """A file with its bytes."""

    name: str
    """With the extension of what was exported."""
    url: str
    data: bytes


class GoogleDrive(Protocol):
    """Google Drive, asked in the name of a connection. Each method raises ToolError."""

    async def list_files(
        self, words: str, folder_id: str, most: int, connection: Connection, *, tenant_id: str, run: str
    ) -> tuple[Sequence[Mapping[str, Any]], bool]:
        """Files that hold the words, or are in a folder; without both the newest. And whether there are more."""
        ...

    async def read_file(self, file_id: str, connection: Connection, *, tenant_id: str, run: str) -> DriveFile:
        """A file; of a document of Google's own in another format."""
        ...


def file_id_of(said: str) -> str:
    """The id of a file, which may be given by its address. Raises DriveFailed."""
    for pattern in (_LINK, _LINK_WITH_ID):
        if match := pattern.fullmatch(said):
            return match[1]
    if _ID.fullmatch(said):
        return said
    raise DriveFailed("name the file by its id or its address at Google Drive", reason="INVALID_ARGUMENTS")
