"""Folders of a mailbox, read by IMAP (RFC 9051 and RFC 3501). A message never changes: its folder's UIDVALIDITY and its UID name it
for ever. New and deleted mails are found by comparing the UIDs with the last listing's."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date
from typing import Any

from kit.network.egress import place_of
from kit.network.imap import ImapRefused, MailClient, MailServer
from services.ingest.adapters.source_http import SourceHttp, source_http
from services.ingest.adapters.sources._imap_connection import AnswerTooLong, ConnectionLost, SourceMail
from services.ingest.adapters.sources._mail_folders import (
    MailFolder,
    MailPlace,
    chosen,
    read_cursor,
    wanted_folders,
    written_cursor,
)
from services.ingest.adapters.sources._mail_names import described
from services.ingest.adapters.sources._oauth_token import refresher
from services.ingest.errors import BadSource, FileNotTaken, SourceAway, SourceTooLarge
from services.ingest.sources.models import FailingFile, FileReaders, SourceFile, SourceListing
from services.ingest.sources.ports import Opening, SourceField, SourceKind, SourceReader

_TLS_PORT, _PLAIN_PORT = 993, 143
_PIECE_BYTES = 1024 * 1024
_TOGETHER = 200
"""Messages whose envelopes are asked for at once."""
_ENVELOPE = ("ENVELOPE", "INTERNALDATE", "RFC822.SIZE")
_LIST_BYTES_MOST = 1024 * 1024
_UID_BYTES, _OTHER_BYTES_MOST = 12, 64 * 1024
"""Of an answer to a search: for each message, and for what a folder says of itself."""
_NOT_TO_OPEN = {b"\\noselect", b"\\nonexistent"}


class MailReader:
    """The messages of some folders. Nothing is changed in them, not even whether a message was seen."""

    is_public = False

    def __init__(self, connection: SourceMail, opening: Opening) -> None:
        self._connection = connection
        self._wanted = wanted_folders(opening.settings.get("folders", "INBOX"))
        self._since = _day(opening.settings.get("since", ""))
        self._max_files = opening.surroundings.max_files
        self._user = FileReaders(frozenset([opening.settings.get("user", "").lower()]))
        self._readers = self._user if tells_readers(opening.settings) else None

    async def look(self) -> None:
        """Raises SourceAway where the mailbox cannot be opened or a folder is not there."""
        await self._folders()

    async def describe_access(self, keys: Collection[str]) -> Mapping[str, FileReaders]:
        return dict.fromkeys(keys, self._user)

    async def list_changes(self, cursor: str) -> SourceListing:
        before, now, problems, count = read_cursor(cursor), dict[str, MailFolder](), list[FailingFile](), 0
        for name in await self._folders():
            try:
                now[name] = await self._look_into(name, self._max_files - count)
                count += len(now[name].uids)
            except ImapRefused as error:
                what = f"the folder cannot be opened ({error}); give the user the right to read it"
                problems.append(FailingFile(name, "FOLDER_UNREADABLE", what))
        if not count:
            before = {}  # a listing without any message is complete: a person is asked before all documents go
        for problem in problems:
            if problem.key in before:
                now[problem.key] = before[problem.key]
        files = []
        for name, folder in now.items():
            files += await self._described(folder.places(name, folder.without(before.get(name))), problems)
        gone = [
            place.key for name, folder in before.items() for place in folder.places(name, folder.without(now.get(name)))
        ]
        return SourceListing(
            files, is_complete=not before, gone=gone, problems=problems, cursor=written_cursor(now) if count else ""
        )

    async def fetch(self, file: SourceFile) -> AsyncIterator[bytes]:
        place, offset = MailPlace.of(file.key), 0
        while piece := await self._piece(place, offset):
            yield piece
            offset += len(piece)
            if len(piece) != _PIECE_BYTES:  # less: the end; more: all of it, from a server that knows no parts
                return
        if not offset:
            raise FileNotTaken("FILE_UNREADABLE", "the server gives out nothing of it; see whether it can be opened")

    async def _piece(self, place: MailPlace, offset: int) -> bytes:
        """Raises FileNotTaken."""

        def ask(client: MailClient) -> bytes | None:
            if client.open_folder(place.folder) != place.uid_validity:
                return None
            found = client.fetch([place.uid], [f"BODY.PEEK[]<{offset}.{_PIECE_BYTES}>"]).get(place.uid, {})
            parts = [value for name, value in found.items() if name.startswith(b"BODY[]")]
            return bytes(parts[0] or b"") if parts else None

        try:
            piece = await self._connection.call(ask)
        except ImapRefused as error:
            raise FileNotTaken(
                "FILE_UNREADABLE", f"the server does not give it out ({error}); see whether it can be opened"
            ) from error
        except AnswerTooLong as error:
            raise FileNotTaken(
                "FILE_TOO_LARGE",
                f"it is not read, since the server sends it as a whole and {error.message}; split the message",
            ) from error
        except ConnectionLost as error:  # whether it is this message shows when the next one is asked for
            raise FileNotTaken("FILE_CUT_OFF", f"it could not be read ({error.message})") from error
        if piece is None:
            raise FileNotTaken("NO_FILE", "it is not there any more")
        return piece

    async def _folders(self) -> list[str]:
        """Names of those that are wanted. Raises SourceAway."""
        try:
            listed = await self._connection.call(lambda client: client.list_folders(), _LIST_BYTES_MOST)
        except ImapRefused as error:
            raise SourceAway(f"the server does not list the folders of this user ({error})") from error
        there = [_text(name) for flags, _, name in listed if not _NOT_TO_OPEN & {flag.lower() for flag in flags}]
        return await asyncio.to_thread(chosen, self._wanted, there)

    async def _look_into(self, name: str, most: int) -> MailFolder:
        """`most`: how many messages it may have. Raises ImapRefused, SourceTooLarge."""
        too_large = SourceTooLarge(
            f"the folders have more than {self._max_files} messages; give a day from which on (since), name fewer folders, or have "
            "the operator raise GROUNDWORK_SOURCE_MAX_FILES"
        )
        criteria: list[Any] = ["UNDELETED", *(("SINCE", self._since) if self._since else ())]

        def ask(client: MailClient) -> MailFolder:
            uid_validity = client.open_folder(name, anew=True)
            found = client.search(criteria)
            if len(found) > most:
                raise too_large
            return MailFolder(uid_validity, frozenset(found))

        try:
            return await self._connection.call(ask, most * _UID_BYTES + _OTHER_BYTES_MOST)
        except AnswerTooLong as error:
            raise too_large from error

    async def _described(self, places: Sequence[MailPlace], problems: list[FailingFile]) -> list[SourceFile]:
        """Messages of one folder, with what their envelopes say. One that is gone meanwhile is left out."""
        files = []
        for start in range(0, len(places), _TOGETHER):
            some = places[start : start + _TOGETHER]
            try:
                found = await self._envelopes(some)
            except (ImapRefused, AnswerTooLong):
                found = {}
            for place in some:
                try:
                    said = found.get(place.uid) or (await self._envelopes([place])).get(place.uid)
                except ImapRefused as error:
                    what = f"the server does not give it out ({error}); see whether it can be opened"
                    problems.append(FailingFile(place.key, "FILE_UNREADABLE", what))
                    continue
                except AnswerTooLong:
                    what = "its head is too long to be read; remove recipients from it, or delete the message"
                    problems.append(FailingFile(place.key, "FILE_TOO_LARGE", what))
                    continue
                if said is not None:
                    files.append(replace(described(place.key, place.folder, said), readers=self._readers))
        return files

    async def _envelopes(self, places: Sequence[MailPlace]) -> Mapping[int, Mapping[bytes, Any]]:
        """By UID. Raises ImapRefused."""

        def ask(client: MailClient) -> Mapping[int, Mapping[bytes, Any]]:
            if client.open_folder(places[0].folder) != places[0].uid_validity:
                return {}
            found: Mapping[int, Mapping[bytes, Any]] = client.fetch([place.uid for place in places], _ENVELOPE)
            return {uid: said for uid, said in found.items() if b"ENVELOPE" in said}

        return await self._connection.call(ask)


def tells_readers(settings: Mapping[str, str]) -> bool:
    """Sources of releases that did not say whose a mailbox is have no such setting."""
    return settings.get("access") == "source"


def _text(name: str | bytes) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


def _day(said: str) -> date | None:
    """Raises BadSource."""
    try:
        return date.fromisoformat(said) if said else None
    except ValueError as error:
        raise BadSource(f"since is a day, as 2024-01-31, not {said[:40]!r}") from error


def _server(opening: Opening, http: SourceHttp) -> MailServer:
    """Raises BadSource, UrlRefused."""
    settings, password = opening.settings, opening.secrets.get("password", "")
    token = refresher(http, settings.get("token_url", ""), opening)
    if bool(password) == (token is not None):
        raise BadSource("give the secret password, or client_id and refresh_token, with the setting token_url")
    security = settings.get("security", "tls")
    if security not in ("tls", "starttls"):
        raise BadSource(f"security is tls or starttls, not {security[:40]!r}; passwords are sent over no open line")
    said = settings.get("port") or str(_TLS_PORT if security == "tls" else _PLAIN_PORT)
    port = int(said) if said.isascii() and said.isdigit() and len(said) < 6 else 0
    if not 0 < port < 65_536:
        raise BadSource(f"port is a number from 1 to 65535, not {said[:40]!r}")
    server, user = settings["server"], settings["user"]
    place = None
    with contextlib.suppress(ValueError):
        place = place_of(f"https://{server}:{port}")
    if place is None or place.host != server.lower().rstrip("."):
        raise BadSource("server is the name of a host without anything else, as imap.example.com")
    if not user.isprintable() or not password.isprintable():
        raise BadSource("user and password must not have line breaks or other invisible characters; copy them again")
    return MailServer(place.host, port, security == "starttls", user, password, token)


@asynccontextmanager
async def _open(opening: Opening) -> AsyncIterator[SourceReader]:
    guard = opening.surroundings.guard
    async with source_http(guard) as http:
        connection = SourceMail(guard, _server(opening, http))
        try:
            reader = MailReader(connection, opening)
            await reader.look()
            yield reader
        finally:
            await connection.close()


KIND = SourceKind(
    name="imap",
    says="The messages of folders of a mailbox.",
    fields=(
        SourceField("server", "name of the IMAP server, as imap.example.com", is_required=True),
        SourceField("user", "that opens the mailbox, mostly its address", is_required=True),
        SourceField(
            "folders",
            "INBOX by default; names with commas between them, with * for any characters, as INBOX,Projects/*",
        ),
        SourceField(
            "access",
            "source: the user alone, and owners of the collection; or collection: all who may read that",
            choices=("source", "collection"),
        ),
        SourceField("since", "only messages that arrived on this day or later, as 2024-01-31"),
        SourceField("security", "tls by default, or starttls", choices=("tls", "starttls")),
        SourceField("port", f"{_TLS_PORT} by default, {_PLAIN_PORT} with starttls"),
        SourceField(
            "token_url",
            "where access tokens are given out for refresh_token, as https://oauth2.googleapis.com/token",
            is_url=True,
        ),
        SourceField("password", "of the user, or one that the provider makes for programs", is_secret=True),
        SourceField("client_id", "of an OAuth client, instead of a password", is_secret=True),
        SourceField("client_secret", "of the OAuth client, if it has one", is_secret=True),
        SourceField("refresh_token", "that the user gave the OAuth client", is_secret=True),
    ),
    open=_open,
    default_name=lambda settings: settings["user"],
    tells_readers=tells_readers,
    defaults={"access": "source"},
)
