"""Files below a folder of Google Drive, with who may read them. What has changed is asked for by the API's page tokens. All is
listed anew once an hour, since changes do not tell what a folder hands down to its files."""

import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from kit.vocabulary.google_drive import EXPORTS, FOLDER, GOOGLES_OWN
from services.ingest.adapters.source_http import body_of, secret_url, source_http
from services.ingest.adapters.source_patterns import matcher, path_part
from services.ingest.adapters.sources._drive_api import DriveApi, DriveRefused
from services.ingest.adapters.sources._google_token import GoogleToken
from services.ingest.errors import FileNotTaken, SourceAway, SourceTooLarge
from services.ingest.sources.models import FailingFile, FileReaders, SourceFile, SourceListing
from services.ingest.sources.ports import Opening, SourceField, SourceKind, SourceReader

_API = "https://www.googleapis.com"
_LIST_ALL_EVERY_S = 3600.0
_DEEPEST = 100
_SHARES = "make the account one that may share it (an editor), or make the source with access=collection"


class DriveReader:
    """The files below one folder, by their ids."""

    is_public = False

    def __init__(self, api: DriveApi, opening: Opening, now: Callable[[], float] = time.time) -> None:
        settings = opening.settings
        self._api, self._now = api, now
        self._root = settings["folder"].rstrip("/").rpartition("/")[2].partition("?")[0]
        self._tells_readers = _tells_readers(settings)
        self._is_wanted = matcher(settings.get("only", ""))
        self._max_files = opening.surroundings.max_files
        self._drive_id = ""
        """Of the shared drive that the folder is in."""
        self._exports: dict[str, str] = {}

    async def look(self) -> None:
        """Raises SourceAway where the folder cannot be read."""
        found = await self._asked(self._api.file(self._root))
        if found.get("mimeType") != FOLDER or found.get("trashed"):
            raise SourceAway("what folder names is no folder, or is in the bin; take the id from the folder's address")
        self._root, self._drive_id = str(found["id"]), str(found.get("driveId", ""))
        problems: list[FailingFile] = []
        if self._tells_readers:
            await self._readers(found, str(found["name"]), problems)
        if problems:
            raise SourceAway(problems[0].message)

    async def list_changes(self, cursor: str) -> SourceListing:
        token, listed_at = json.loads(cursor) if cursor else ("", 0.0)
        is_recent = token and 0 <= self._now() - listed_at < _LIST_ALL_EVERY_S
        if is_recent and (changes := await self._changes(token, listed_at)) is not None:
            return changes
        listed_at = self._now()
        token = await self._asked(self._api.start(self._drive_id))  # before the listing, which takes its time
        problems: list[FailingFile] = []
        files = await self._below_root(problems)
        return SourceListing(files, problems=problems, cursor=json.dumps([token, listed_at]))

    async def describe_access(self, keys: Collection[str]) -> Mapping[str, FileReaders]:  # noqa: ARG002 - one list has all
        files = await self._below_root([])
        return {file.key: file.readers for file in files if file.readers is not None}

    async def _changes(self, token: str, listed_at: float) -> SourceListing | None:
        """None where all has to be listed: a folder has changed, or the token is too old."""
        try:
            changes, token = await self._api.changes(token, self._drive_id)
        except DriveRefused:
            return None
        files, gone, problems = dict[str, SourceFile](), set[str](), list[FailingFile]()
        folders: dict[str, Mapping[str, Any]] = {}
        for change in changes:
            if not (file_id := str(change.get("fileId", ""))):
                continue
            found = change.get("file") or {}
            if found.get("mimeType") == FOLDER:
                return None
            files.pop(file_id, None)
            gone.discard(file_id)
            path = None if change.get("removed") or found.get("trashed") else await self._path(found, folders)
            file = None if path is None else await self._file(found, path, problems)
            if file is None:
                gone.add(file_id)
            else:
                files[file_id] = file
        cursor = json.dumps([token, listed_at])
        return SourceListing(
            list(files.values()), is_complete=False, gone=sorted(gone), problems=problems, cursor=cursor
        )

    async def _path(self, found: Mapping[str, Any], folders: dict[str, Mapping[str, Any]]) -> str | None:
        """The folders that a file is in, below the root; None where it is not below it."""
        names: list[str] = []
        parent = next(iter(found.get("parents", ())), "")
        while parent and parent != self._root and len(names) < _DEEPEST:
            if parent not in folders:
                try:
                    folders[parent] = await self._api.file(parent)
                except DriveRefused as error:
                    if error.status not in (403, 404):
                        raise _away(error) from error
                    folders[parent] = {}
            names.insert(0, _path_part(str(folders[parent].get("name", ""))))
            parent = next(iter(folders[parent].get("parents", ())), "")
        return "".join(f"{name}/" for name in names) if parent == self._root else None

    async def _below_root(self, problems: list[FailingFile]) -> list[SourceFile]:
        files: list[SourceFile] = []
        paths, level = {self._root: ""}, [self._root]
        while level:
            deeper = []
            for found in await self._asked(self._api.children(level, self._drive_id)):
                parent = next((each for each in found.get("parents", ()) if each in paths), None)
                if parent is None:
                    continue
                if found.get("mimeType") == FOLDER:
                    if found["id"] not in paths:
                        paths[found["id"]] = f"{paths[parent]}{_path_part(str(found['name']))}/"
                        deeper.append(found["id"])
                elif (file := await self._file(found, paths[parent], problems)) is not None:
                    files.append(file)
                if len(files) > self._max_files or len(paths) > self._max_files:
                    raise SourceTooLarge(
                        f"the folder has more than {self._max_files} files; name a folder in it or patterns, or have the operator "
                        "raise GROUNDWORK_SOURCE_MAX_FILES"
                    )
            level = deeper
        return files

    async def _file(self, found: Mapping[str, Any], path: str, problems: list[FailingFile]) -> SourceFile | None:
        """None for what is no file that is wanted."""
        kind, name = str(found.get("mimeType", "")), _path_part(str(found.get("name", "")))
        exported, suffix = EXPORTS.get(kind, ("", ""))
        if not exported and kind.startswith(GOOGLES_OWN):
            return None
        name = f"{name}{suffix}" if suffix and not name.lower().endswith(suffix) else name
        if not self._is_wanted(name):
            return None
        file_id, size = str(found["id"]), str(found.get("size", ""))
        self._exports[file_id] = exported
        version = str(found.get("md5Checksum") or found.get("modifiedTime") or "")
        size_bytes = int(size) if size.isascii() and size.isdigit() else 0
        readers = await self._readers(found, f"{path}{name}", problems) if self._tells_readers else None
        return SourceFile(file_id, version, size_bytes, f"{path}{name}", readers=readers)

    async def _readers(self, found: Mapping[str, Any], path: str, problems: list[FailingFile]) -> FileReaders:
        """Nobody where the API does not say."""
        permissions = found.get("permissions")
        if permissions is None:
            try:
                permissions = await self._api.permissions(str(found["id"]))
            except DriveRefused as error:
                what = (
                    f"Google Drive does not say who may read {path} ({error}): owners of the collection do; {_SHARES}"
                )
                problems.append(FailingFile(str(found["id"]), "ACCESS_UNKNOWN", what))
                return FileReaders()
        return _who(permissions)

    async def fetch(self, file: SourceFile) -> AsyncIterator[bytes]:
        try:
            async with self._api.content(file.key, self._exports.get(file.key, "")) as answer:
                async for piece in body_of(answer):
                    yield piece
        except DriveRefused as error:
            if error.status == 401:
                raise _away(error) from error
            reason = "NO_FILE" if error.status == 404 else "FILE_UNREADABLE"
            what = "see that the account may download it; documents of Google's own are given out up to 10 MB"
            raise FileNotTaken(reason, f"Google Drive does not give it out ({error}); {what}") from error

    async def _asked(self, call: Any) -> Any:
        """Raises SourceAway."""
        try:
            return await call
        except DriveRefused as error:
            raise _away(error) from error


def _who(permissions: Sequence[Mapping[str, Any]]) -> FileReaders:
    """People and groups by their addresses, a domain as a group. A link that must be known lets nobody in who searches."""
    subjects, groups, is_public = set[str](), set[str](), False
    for each in permissions:
        if each.get("deleted"):
            continue
        address = str(each.get("emailAddress", "")).lower()
        match each.get("type"):
            case "user" if address:
                subjects.add(address)
            case "group" if address:
                groups.add(address)
            case "domain" if each.get("domain") and each.get("allowFileDiscovery"):
                groups.add(str(each["domain"]).lower())
            case "anyone" if each.get("allowFileDiscovery"):
                is_public = True
    return FileReaders(frozenset(subjects), frozenset(groups), is_public)


def _path_part(name: str) -> str:
    return path_part(name).strip(". ") or "_"


def _away(error: DriveRefused) -> SourceAway:
    return SourceAway(
        f"Google Drive cannot be read ({error}); see that the folder is shared with the account, and that its secrets hold"
    )


def _tells_readers(settings: Mapping[str, str]) -> bool:
    return settings.get("access", "source") == "source"


@asynccontextmanager
async def _open(opening: Opening) -> AsyncIterator[SourceReader]:
    settings, guard = opening.settings, opening.surroundings.guard
    endpoint = settings.get("endpoint", "").rstrip("/")
    secret_url(endpoint or _API, "endpoint")
    async with source_http(guard) as token_http:
        token_url = f"{endpoint}/token" if endpoint else "https://oauth2.googleapis.com/token"
        token = GoogleToken(token_http, opening, token_url)
        async with source_http(guard, token.headers) as http:
            reader = DriveReader(DriveApi(http, endpoint or _API), opening)
            await reader.look()
            yield reader


KIND = SourceKind(
    name="drive",
    says="The files below a folder of Google Drive.",
    fields=(
        SourceField("folder", "its id or address; root is My Drive", is_required=True),
        SourceField(
            "only", "only files whose names match one of these patterns, with commas between them, as *.md,*.pdf"
        ),
        SourceField(
            "access",
            "source by default: who may read a file there; or collection: all who may read that",
            choices=("source", "collection"),
        ),
        SourceField("acts_for", "address of whom a service account acts for, where the domain lets it"),
        SourceField("endpoint", f"{_API} by default", is_url=True),
        SourceField("service_account", "JSON file of a service account's key", is_secret=True),
        SourceField("client_id", "of an OAuth client, with client_secret and refresh_token", is_secret=True),
        SourceField("client_secret", "of the OAuth client", is_secret=True),
        SourceField("refresh_token", "that a person gave the OAuth client", is_secret=True),
    ),
    open=_open,
    default_name=lambda _: "drive",
    tells_readers=_tells_readers,
)
