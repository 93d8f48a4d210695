"""A feed of news: RSS or Atom. Each entry is a document. An entry that a feed no longer lists keeps its document, since feeds list
only what is new."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html import escape
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit

import feedparser

from services.ingest.adapters.source_http import SourceHttp, source_http
from services.ingest.errors import FileNotTaken, SourceAway
from services.ingest.sources.models import SourceFile, SourceListing
from services.ingest.sources.ports import Opening, SourceField, SourceKind, SourceReader

_KEY_CHARACTERS_MOST = 1_000


class FeedReader:
    """The entries that a feed lists now."""

    def __init__(self, http: SourceHttp, url: str) -> None:
        self._http, self._url = http, url
        self._pages: dict[str, bytes] = {}
        """By key."""

    async def list_changes(self, cursor: str) -> SourceListing:
        asked: dict[str, str] = json.loads(cursor) if cursor else {}
        answer = await self._http.text(self._url, asked)
        if answer.status_code == 304:
            return SourceListing((), is_complete=False, cursor=cursor)
        if answer.status_code != 200:
            raise SourceAway(f"the feed answers with {answer.status_code}; see that its address is right")
        # Headers are given as they came, and the body as a file: the parser takes bytes for a path or an address first.
        content_type = answer.headers.get("content-type", "")
        feed = await asyncio.to_thread(
            feedparser.parse, BytesIO(answer.content), response_headers={"content-type": content_type}
        )
        if not feed.version:
            raise SourceAway(
                "there is neither RSS nor Atom at the address; see that it is the feed's and not the site's"
            )
        files = []
        for entry in feed.entries:
            key = str(entry.get("id") or entry.get("link") or "")[:_KEY_CHARACTERS_MOST]
            if key and key not in self._pages:
                page = self._pages[key] = _page(entry)
                version = hashlib.sha256(page).hexdigest()[:32]
                metadata = {"url": entry.link} if entry.get("link") else {}
                files.append(SourceFile(key, version, len(page), _name(key), metadata))
        validators = {
            "If-None-Match": answer.headers.get("etag"),
            "If-Modified-Since": answer.headers.get("last-modified"),
        }
        kept = {name: value for name, value in validators.items() if value}
        return SourceListing(files, is_complete=False, cursor=json.dumps(kept) if kept else "")

    async def fetch(self, file: SourceFile) -> AsyncIterator[bytes]:
        if file.key not in self._pages:
            raise FileNotTaken("NO_FILE", "the feed does not list it any more")
        yield self._pages[file.key]


def _page(entry: Any) -> bytes:
    """An entry as a page. What is no text in it goes when the page is read, as with every page."""
    title = escape(str(entry.get("title", "")))
    texts = [str(part.value) for part in entry.get("content", ()) if "html" in part.type or part.type == "text/plain"]
    body = "\n".join(texts) or str(entry.get("summary", ""))
    about = " · ".join(escape(str(entry[name])) for name in ("published", "author") if entry.get(name))
    said = f"<p>{about}</p>" if about else ""
    head = f"<!DOCTYPE html><html><head><meta charset=utf-8><title>{title}</title></head>"
    return f"{head}<body><h1>{title}</h1>{said}{body}</body></html>".encode()


def _name(key: str) -> str:
    """Of the document: the path of the entry's address, or what stands for it. It stays the same when the title changes."""
    parts = urlsplit(key)
    path = "/".join(part for part in parts.path.split("/") if part.strip(". "))
    mark = hashlib.sha256(key.encode()).hexdigest()[:8]
    return f"{path[-150:].lstrip('/') or 'entry'}-{mark}.html"


@asynccontextmanager
async def _open(opening: Opening) -> AsyncIterator[SourceReader]:
    await opening.surroundings.guard.check(opening.settings["url"])
    async with source_http(opening.surroundings.guard) as http:
        reader = FeedReader(http, opening.settings["url"])
        yield reader


KIND = SourceKind(
    name="feed",
    says="A feed of news, RSS or Atom.",
    fields=(SourceField("url", "its address", is_required=True, is_url=True),),
    open=_open,
    default_name=lambda settings: urlsplit(settings["url"]).hostname or "feed",
)
