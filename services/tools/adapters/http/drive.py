"""Asks Google Drive's API (version 3) for tools, by connections: at an address that kit.network.egress permits, with bounds on size
and time, and without following redirects."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx
from pydantic import SecretStr

from kit.errors import GroundworkError
from kit.network.egress import EgressGuard
from kit.network.guarded_http import guarded_transport
from kit.vocabulary.google_drive import EXPORTS, FOLDER, GOOGLES_OWN
from services.tools.connections.drive import DriveFailed, DriveFile
from services.tools.connections.records import Connection
from services.tools.connections.windows import ConnectionWindows
from services.tools.errors import ServiceUnavailable, ToolError
from services.tools.web.files import FILE_BYTES_MAX
from services.tools.web.pages import WebBusy

_ANSWER_TIMEOUT_S, _FILE_TIMEOUT_S = 8.0, 15.0
_ANSWER_BYTES_MAX = 2 * 1024 * 1024
_FILE = "id,name,mimeType,modifiedTime,size,webViewLink,trashed"
_SHARED = {"supportsAllDrives": "true", "includeItemsFromAllDrives": "true"}
_TOO_OFTEN = {"rateLimitExceeded", "userRateLimitExceeded", "dailyLimitExceeded", "sharingRateLimitExceeded"}
_REST_S = 60.0
_SAID_CHARACTERS = 200
_ADVICE = {
    401: "does not take the credential: it is over or withdrawn; connect Google Drive again",
    403: "does not allow this to the connected account",
    404: "has no such file, or hides it from the connected account",
}


class DriveClient:
    """Google Drive for all callers of this process. `close` it."""

    def __init__(self, guard: EgressGuard, address: str) -> None:
        """`address` of Google's APIs: https://www.googleapis.com."""
        self.address = address
        self._guard = guard
        self._transport: httpx.AsyncBaseTransport | None = None
        self._windows = ConnectionWindows()

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()

    async def account(self, secret: SecretStr) -> str:
        """As whom Google knows the holder of an access token. Raises ToolError."""
        data = _object(await self._sent("/about", {"fields": "user"}, secret))
        user = data.get("user") or {}
        return str(user.get("emailAddress") or user.get("displayName") or "")[:100]

    async def list_files(
        self, words: str, folder_id: str, most: int, connection: Connection, *, tenant_id: str, run: str
    ) -> tuple[Sequence[Mapping[str, Any]], bool]:
        conditions = ["trashed = false"]
        conditions += [f"fullText contains '{_quoted(words)}'"] if words else []
        conditions += [f"'{_quoted(folder_id)}' in parents"] if folder_id else []
        asked = {"q": " and ".join(conditions), "pageSize": str(most), **_SHARED, "corpora": "allDrives"}
        # Google orders what it found by words itself, and takes no other order then.
        asked |= {} if words else {"orderBy": "modifiedTime desc"}
        asked["fields"] = f"nextPageToken,incompleteSearch,files({_FILE})"
        answer = _object(await self._asked("/files", asked, connection, tenant_id, run))
        files = [each for each in answer.get("files") or () if isinstance(each, dict)]
        return files, bool(answer.get("nextPageToken") or answer.get("incompleteSearch"))

    async def read_file(self, file_id: str, connection: Connection, *, tenant_id: str, run: str) -> DriveFile:
        path = f"/files/{quote(file_id, safe='')}"
        shared = {"supportsAllDrives": "true"}
        found = _object(await self._asked(path, {"fields": _FILE, **shared}, connection, tenant_id, run))
        kind, name = str(found.get("mimeType", "")), _plain(str(found.get("name", "")))
        if kind == FOLDER:
            raise DriveFailed("it is a folder; list it with drive_search", reason="INVALID_ARGUMENTS")
        exported, suffix = EXPORTS.get(kind, ("", ""))
        if not exported and kind.startswith(GOOGLES_OWN):
            raise DriveFailed(f"{name} is a {kind.removeprefix(GOOGLES_OWN)}, which has no text to read")
        if str(found.get("size", "")).isdecimal() and int(found["size"]) > FILE_BYTES_MAX and not exported:
            raise _too_large(name)
        query = {"mimeType": exported} if exported else {"alt": "media", **shared}
        path = f"{path}/export" if exported else path
        data = await self._asked(path, query, connection, tenant_id, run, FILE_BYTES_MAX)
        name = name if not suffix or name.lower().endswith(suffix) else f"{name}{suffix}"
        return DriveFile(name, str(found.get("webViewLink") or f"https://drive.google.com/file/d/{file_id}"), data)

    async def _asked(
        self,
        path: str,
        query: Mapping[str, str],
        connection: Connection,
        tenant_id: str,
        run: str,
        most: int = _ANSWER_BYTES_MAX,
    ) -> bytes:
        windows = self._windows.of(tenant_id, connection)
        windows.take("Google Drive", run)
        try:
            return await self._sent(path, query, connection.secret, most)
        except _TooOften as error:
            windows.leave_alone("Google Drive", error.wait_s)
            raise

    async def _sent(
        self, path: str, query: Mapping[str, str], secret: SecretStr, most: int = _ANSWER_BYTES_MAX
    ) -> bytes:
        """The body of a good answer. Raises ToolError."""
        if self._transport is None:
            self._transport = await asyncio.to_thread(guarded_transport, self._guard)  # it reads certificates
        headers = {
            "Accept-Encoding": "identity",
            "Authorization": f"Bearer {secret.get_secret_value()}",
            "User-Agent": "groundwork",
        }
        timeout_s = _ANSWER_TIMEOUT_S if most == _ANSWER_BYTES_MAX else _FILE_TIMEOUT_S
        # A transport, not a client of httpx: that would keep cookies of one user for another.
        url = httpx.URL(f"{self.address}/drive/v3{path}", params=dict(query))
        timeout = httpx.Timeout(_ANSWER_TIMEOUT_S).as_dict()
        request = httpx.Request("GET", url, headers=headers, extensions={"timeout": timeout})
        try:
            async with asyncio.timeout(timeout_s):
                response = await self._transport.handle_async_request(request)
                try:
                    body = await _body(response, most)
                finally:
                    await response.aclose()
        except GroundworkError as error:  # of the guard, before anything is sent
            raise ServiceUnavailable(error.message, reason=error.reason) from error
        except (httpx.TransportError, TimeoutError) as error:
            raise ServiceUnavailable(
                f"Google Drive does not answer ({str(error) or 'not in time'}); try again later"
            ) from error
        if response.status_code != 200:
            raise _refusal(response, body)
        if len(body) > most:
            raise _too_large("the file") if most > _ANSWER_BYTES_MAX else DriveFailed("the answer is too large")
        return body


class _TooOften(WebBusy):
    """Google wants to be asked later."""

    def __init__(self, message: str, wait_s: float) -> None:
        super().__init__(message)
        self.wait_s = wait_s


async def _body(response: httpx.Response, most: int) -> bytes:
    """The body, and a byte more where it has more than it may."""
    body = bytearray()
    async for piece in response.aiter_raw():
        body += piece
        if len(body) > most:
            return bytes(body[: most + 1])
    return bytes(body)


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise DriveFailed("it does not answer as Google Drive does; an operator has to look at its address")
    return data


def _refusal(response: httpx.Response, body: bytes) -> ToolError:
    status, said, reasons = response.status_code, "", set[str]()
    try:
        error = json.loads(body)["error"]
        said = " ".join(str(error.get("message", "")).split())[:_SAID_CHARACTERS]
        reasons = {str(each.get("reason", "")) for each in error.get("errors", ())}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        pass
    if status == 429 or (status == 403 and reasons & _TOO_OFTEN):
        after = response.headers.get("retry-after", "")
        wait_s = float(after) if after.isdecimal() and len(after) <= 6 else _REST_S
        return _TooOften(f"Google Drive wants to be asked later; try again in {max(1, round(wait_s))} s", wait_s)
    if status >= 500:
        return ServiceUnavailable(f"Google Drive cannot do that now (it answered with {status}); try again later")
    reason = "CONNECTION_REFUSED" if status == 401 else None
    detail = f" ({said})" if said else ""
    return DriveFailed(f"Google Drive {_ADVICE.get(status, f'answered with {status}')}{detail}", reason=reason)


def _too_large(name: str) -> ToolError:
    return DriveFailed(
        f"{name} is larger than {FILE_BYTES_MAX // 1024**2} MiB; a person can open it in Google Drive",
        reason="DRIVE_FILE_TOO_LARGE",
    )


def _quoted(words: str) -> str:
    """For a query, in quotes."""
    return words.replace("\\", "\\\\").replace("'", "\\'")


def _plain(name: str) -> str:
    """The name of a file without what would make it a path."""
    return "".join(each for each in name if each.isprintable() and each not in "/\\")[-120:] or "file"
