"""The calls of Google Drive's API (version 3) that its source makes."""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, urlencode

import httpx

from services.ingest.adapters.source_http import SourceHttp
from services.ingest.errors import SourceAway, SourceBusy

_PERMISSIONS = "permissions(type,emailAddress,domain,allowFileDiscovery,deleted)"
_FILE = f"id,name,mimeType,md5Checksum,modifiedTime,size,parents,trashed,driveId,{_PERMISSIONS}"
_SHARED = {"supportsAllDrives": "true", "includeItemsFromAllDrives": "true"}
_TOO_OFTEN = {"rateLimitExceeded", "userRateLimitExceeded", "dailyLimitExceeded", "sharingRateLimitExceeded"}
_REST_S = 60.0
_TOGETHER = 20
"""Folders that one request lists."""


class DriveRefused(Exception):
    """The API answers with another status than 200."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(f"{status} {said}".strip())
        self.status = status


class DriveApi:
    """Every method may raise DriveRefused, SourceAway and SourceBusy."""

    def __init__(self, http: SourceHttp, endpoint: str) -> None:
        self._http = http
        self._url = f"{endpoint.rstrip('/')}/drive/v3"

    async def file(self, file_id: str) -> Mapping[str, Any]:
        return await self._get(f"/files/{_id(file_id)}", {"fields": _FILE, "supportsAllDrives": "true"})

    async def children(self, folder_ids: Sequence[str], drive_id: str) -> list[Mapping[str, Any]]:
        """What lies directly in any of some folders."""
        found: list[Mapping[str, Any]] = []
        for start in range(0, len(folder_ids), _TOGETHER):
            either = " or ".join(f"'{_plain(each)}' in parents" for each in folder_ids[start : start + _TOGETHER])
            query = {"q": f"({either}) and trashed = false", "pageSize": "1000", **_SHARED, **_corpus(drive_id)}
            async for page in self._pages(
                "/files", {**query, "fields": f"nextPageToken,incompleteSearch,files({_FILE})"}
            ):
                if page.get("incompleteSearch"):
                    raise SourceAway("Google Drive lists only a part of the files; the next sync tries again")
                found += page.get("files", ())
        return found

    async def start(self, drive_id: str) -> str:
        """The token of changes from now on."""
        query = {"supportsAllDrives": "true", **({"driveId": drive_id} if drive_id else {})}
        return str((await self._get("/changes/startPageToken", query))["startPageToken"])

    async def changes(self, token: str, drive_id: str) -> tuple[list[Mapping[str, Any]], str]:
        """Those since a token, and the token of later ones."""
        found: list[Mapping[str, Any]] = []
        query = {"pageToken": token, "pageSize": "1000", "includeRemoved": "true", **_SHARED}
        query |= {"driveId": drive_id} if drive_id else {}
        query["fields"] = f"nextPageToken,newStartPageToken,changes(fileId,removed,file({_FILE}))"
        async for page in self._pages("/changes", query):
            found += page.get("changes", ())
            token = page.get("newStartPageToken", token)
        return found, token

    async def permissions(self, file_id: str) -> list[Mapping[str, Any]]:
        """Of a file in a shared drive, which does not come with them."""
        query = {"fields": f"nextPageToken,{_PERMISSIONS}", "pageSize": "100", "supportsAllDrives": "true"}
        return [
            each
            async for page in self._pages(f"/files/{_id(file_id)}/permissions", query)
            for each in page.get("permissions", ())
        ]

    @asynccontextmanager
    async def content(self, file_id: str, export_as: str) -> AsyncIterator[httpx.Response]:
        """The bytes of a file; of a document of Google's own in another format."""
        path, query = f"/files/{_id(file_id)}", {"alt": "media", "supportsAllDrives": "true"}
        if export_as:
            path, query = f"{path}/export", {"mimeType": export_as}
        async with self._http.ask(f"{self._url}{path}?{urlencode(query)}") as answer:
            if answer.status_code != 200:
                body = b""
                with contextlib.suppress(httpx.TransportError):
                    async for piece in answer.aiter_raw():
                        body += piece
                        if len(body) > 65_536:
                            break
                raise _refused(httpx.Response(answer.status_code, content=body))
            yield answer

    async def _pages(self, path: str, query: Mapping[str, str]) -> AsyncIterator[Mapping[str, Any]]:
        token, asked = "", set[str]()
        while True:
            page = await self._get(path, {**query, **({"pageToken": token} if token else {})})
            yield page
            token = str(page.get("nextPageToken", ""))
            if not token:
                return
            if token in asked:
                raise SourceAway("the server lists the same part again; see that the endpoint is one of Google Drive")
            asked.add(token)

    async def _get(self, path: str, query: Mapping[str, str]) -> Mapping[str, Any]:
        answer = await self._http.text(f"{self._url}{path}?{urlencode(query)}")
        if answer.status_code != 200:
            raise _refused(answer)
        with contextlib.suppress(ValueError):
            found = answer.json()
            if isinstance(found, dict):
                return found
        raise SourceAway("the server does not answer as Google Drive does; see that the endpoint is right")


def _corpus(drive_id: str) -> Mapping[str, str]:
    return {"corpora": "drive", "driveId": drive_id} if drive_id else {}


def _id(file_id: str) -> str:
    return quote(file_id, safe="")


def _plain(file_id: str) -> str:
    """For a query, in quotes."""
    return file_id.replace("\\", "\\\\").replace("'", "\\'")


def _refused(answer: httpx.Response) -> Exception:
    said, reasons = "", set[str]()
    with contextlib.suppress(ValueError, AttributeError, TypeError, LookupError):
        error = answer.json()["error"]
        said = str(error.get("message", ""))[:200]
        reasons = {each.get("reason", "") for each in error.get("errors", ())}
    if answer.status_code == 403 and reasons & _TOO_OFTEN:
        return SourceBusy(
            f"Google Drive wants to be asked later ({said}); the next sync comes after that", retry_after_s=_REST_S
        )
    return DriveRefused(answer.status_code, said)
