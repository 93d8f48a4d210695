"""Passages of web pages, as evidence that an answer may cite: the run keeps their text, so that a citation opens what was read."""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from groundwork.retriever.v1 import retriever_pb2 as pb

from services.tools.adapters.services.retriever import passage_of
from services.tools.models import Passage
from services.tools.web.pages import Page, PageText
from services.tools.web.searching import Result
from services.tools.web.sections import PagePassage, passages_of


def page_passages(page: Page) -> Sequence[Passage]:
    """All passages of a page, in its order. The same text at the same address has the same ids."""
    content = _digest(f"{page.url}\0{page.text.text}")
    parts = page.text.parts or passages_of(page.text.text)
    return [_passage(page, each, ordinal, content) for ordinal, each in enumerate(parts)]


def result_passages(results: Sequence[Result], found_at: datetime) -> Sequence[Passage]:
    """The snippets of a search of the web, as passages of their pages."""
    pages = [Page(each.url, PageText(each.snippet or each.title, each.title, each.date), found_at) for each in results]
    return [
        _passage(page, PagePassage(page.text.text, (), 0), 0, _digest(f"{page.url}\0{page.text.text}"))
        for page in pages
    ]


def _passage(page: Page, part: PagePassage, ordinal: int, content: str) -> Passage:
    chunk = pb.Chunk(
        chunk_id=f"web-{content}-{ordinal}",
        document_id=f"web-{_digest(page.url)}",
        document_name=page_name(page),
        ordinal=ordinal,
        text=part.text,
        page=part.page_number,
        heading_path=part.heading_path,
        char_start=part.char_start,
        char_end=part.char_start + len(part.text),
        content_hash=_digest(part.text),
        metadata=_origin(page),
    )
    return passage_of(pb.Hit(chunk=chunk))


def about(page: Page) -> dict[str, Any]:
    """JSON of what is known of a page, for the model."""
    known = {
        "url": page.url,
        "title": page.text.title,
        "published": page.text.date,
        "author": page.text.author,
        "read_at": page.read_at.isoformat(timespec="seconds"),
        "truncated": page.is_truncated,
    }
    return {key: value for key, value in known.items() if value}


def page_name(page: Page) -> str:
    """What the page is called: its title and host."""
    host = urlsplit(page.url).hostname or page.url
    return f"{page.text.title} ({host})" if page.text.title else page.url


def _origin(page: Page) -> dict[str, str]:
    known = {
        "author": page.text.author,
        "date": page.text.date,
        "url": page.url,
        "channel": page.url,
        "read_at": page.read_at.isoformat(timespec="seconds"),
    }
    return {key: value for key, value in known.items() if value}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:32]
