"""Files to documents: uploaded a few at a time, and followed until each is searchable or has failed."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import httpx

from cli.client.finding import FoundFile
from cli.client.gateway import Gateway, Json
from cli.errors import ApiError, CliError, ServerUnreachable

UPLOADS_AT_ONCE = 4
BULK_FROM = 21
"""Files of one command from which on they are an import, which keeps no single upload waiting."""
POLL_INTERVAL_S = 1.0
UNREACHABLE_FOR_S = 60.0
"""How long a server that has gone is waited for before the command gives up."""
UPLOADED_SHARE = 0.2
"""Of a file's bar: the upload. The rest is the server's own progress."""
SETTLED = frozenset({"ready", "failed", "deleted"})
_NOT_ALLOWED = frozenset({401, 403})
"""Statuses of a key that was revoked, or may upload and not read: asking again changes nothing."""


class NotFollowed(CliError):
    """What was uploaded may not be followed with this API key."""


@dataclass
class FileState:
    """One file on its way."""

    path: Path
    name: str
    """The document's, as it is sent."""
    document: Json | None = None
    error: Json | None = None
    """Why the upload was refused: reason and message."""

    @property
    def failed(self) -> bool:
        """Refused, failed, or removed by somebody meanwhile."""
        return self.error is not None or (
            self.document is not None and self.document["status"] in {"failed", "deleted"}
        )

    @property
    def settled(self) -> bool:
        """Nothing more will happen."""
        return self.error is not None or (self.document is not None and self.document["status"] in SETTLED)

    @property
    def shown_path(self) -> str:
        """The path as text: a file's name may be any bytes."""
        return os.fsencode(self.path).decode("utf-8", "backslashreplace")

    @property
    def warnings(self) -> list[str]:
        """What the server says of how the file was read."""
        report = (self.document or {}).get("report") or {}
        return [str(warning) for warning in report.get("warnings") or ()]

    @property
    def share_done(self) -> float:
        """0 to 1."""
        if self.settled:
            return 1.0
        if self.document is None:
            return 0.0
        return UPLOADED_SHARE + (1 - UPLOADED_SHARE) * float(self.document.get("progress") or 0.0)

    def why(self) -> tuple[str, str]:
        """Reason and message of the failure."""
        error = self.error or (self.document or {}).get("error") or {}
        removed = (self.document or {}).get("status") == "deleted"
        default = (
            ("DELETED", "the document was removed before it was ready") if removed else ("UNKNOWN", "no reason given")
        )
        return str(error.get("reason", default[0])), str(error.get("message", default[1]))


@dataclass
class Ingestion:
    """All files of one command."""

    files: list[FileState]
    known: dict[str, Json] = field(default_factory=dict)
    """Latest state by document id, also of documents whose upload has not been answered yet."""
    followers: dict[str, list[FileState]] = field(default_factory=dict)
    """Files by document id: the same content under the same name is one document."""

    @property
    def settled(self) -> bool:
        """Whether every file is."""
        return all(file.settled for file in self.files)

    def uploaded(self, file: FileState, document: Json) -> None:
        """The upload was answered."""
        self.followers.setdefault(document["id"], []).append(file)
        self.saw(document)
        file.document = self.known[document["id"]]

    def saw(self, document: Json) -> None:
        """A state arrived, perhaps an older one than we have: answer and event stream overtake each other."""
        known = self.known.get(document["id"])
        if known is not None and _changed_at(document) < _changed_at(known):
            return
        self.known[document["id"]] = document
        for file in self.followers.get(document["id"], ()):
            file.document = document

    def unsettled_ids(self) -> list[str]:
        """Documents that are still on their way."""
        return [id_ for id_, files in self.followers.items() if not all(file.settled for file in files)]


def _unreadable(problem: str) -> Json | None:
    return {"reason": "FILE_UNREADABLE", "message": problem} if problem else None


def _changed_at(document: Json) -> datetime:
    return datetime.fromisoformat(document["updated_at"])


async def ingest(
    gateway: Gateway,
    collection_id: str,
    files: Sequence[FoundFile],
    *,
    wait: bool,
    on_change: Callable[[Ingestion], None],
    encoding: str = "",
) -> Ingestion:
    """Uploads all files and, with `wait`, follows them until each is settled. `encoding`: of those that are text; empty where the
    server is to find out."""
    fields = {"lane": "bulk" if len(files) >= BULK_FROM else "interactive"}
    if encoding:
        fields["encoding"] = encoding
    ingestion = Ingestion([FileState(file.path, file.name, error=_unreadable(file.problem)) for file in files])
    follower = asyncio.create_task(_follow(gateway, collection_id, ingestion, on_change)) if wait else None
    try:
        await _upload_all(gateway, collection_id, ingestion, on_change, fields)
        if follower is not None and not ingestion.settled:
            await follower
    finally:
        if follower is not None:
            follower.cancel()
            await asyncio.gather(follower, return_exceptions=True)
    return ingestion


async def _upload_all(
    gateway: Gateway,
    collection_id: str,
    ingestion: Ingestion,
    on_change: Callable[[Ingestion], None],
    fields: Mapping[str, str],
) -> None:
    waiting = (file for file in ingestion.files if file.error is None)

    async def worker() -> None:
        for file in waiting:
            try:
                ingestion.uploaded(file, await gateway.upload(collection_id, file.path, file.name, fields))
            except ApiError as error:
                if error.reason == "COLLECTION_NOT_FOUND":
                    raise
                file.error = {"reason": error.reason, "message": error.problem.get("detail") or str(error)}
            except OSError as error:
                file.error = _unreadable(error.strerror or str(error))
            except CliError:
                raise
            except Exception as error:  # one file that cannot be sent ends no import of thousands
                file.error = {"reason": "UPLOAD_FAILED", "message": f"it cannot be sent ({error!r})"}
            on_change(ingestion)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(UPLOADS_AT_ONCE):
                group.create_task(worker())
    except* CliError as errors:
        raise errors.exceptions[0] from None


async def _follow(
    gateway: Gateway, collection_id: str, ingestion: Ingestion, on_change: Callable[[Ingestion], None]
) -> None:
    """By event stream; where that breaks, by asking for each document until the stream is back."""
    loop = asyncio.get_running_loop()
    heard_at = loop.time()
    while True:
        with contextlib.suppress(httpx.TransportError, CliError):
            async with gateway.events("GET", "/v1/events", params={"collection_id": collection_id}) as (_, events):
                async for event in events:
                    heard_at = loop.time()
                    if event.kind == "document":
                        ingestion.saw(event.data)
                        on_change(ingestion)
                    if ingestion.settled:
                        return
        try:
            await _poll(gateway, ingestion)
            heard_at = loop.time()
        except ServerUnreachable:
            if loop.time() - heard_at > UNREACHABLE_FOR_S:
                raise
        on_change(ingestion)
        if ingestion.settled:
            return
        await asyncio.sleep(POLL_INTERVAL_S)


async def _poll(gateway: Gateway, ingestion: Ingestion) -> None:
    for document_id in ingestion.unsettled_ids():
        try:
            ingestion.saw(await gateway.request("GET", f"/v1/documents/{document_id}"))
        except ApiError as error:
            if error.status == 404:
                ingestion.saw({**ingestion.known[document_id], "status": "deleted"})
            elif error.status in _NOT_ALLOWED:
                raise NotFollowed(
                    f"The files were uploaded, but what becomes of them is not known: {error}\n"
                    "`--no-wait` uploads without asking; a key that also follows needs the scope `query` besides `ingest`."
                ) from error
