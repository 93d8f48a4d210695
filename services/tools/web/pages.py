"""What is read from the web, and how reading it fails."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from services.tools.errors import ToolError
from services.tools.web.sections import PagePassage

URL_CHARACTERS_MAX = 2_000


class WebFailed(ToolError):
    """A web page could not be read."""

    reason = "WEB_FAILED"


class WebBusy(ToolError):
    """A host or a run was asked for as many pages as it may be, for now."""

    reason = "WEB_LIMIT"


@dataclass(frozen=True)
class WebAnswer:
    """What a web server said to one request. `body` is bounded and not compressed."""

    url: str
    status: int
    headers: Mapping[str, str]
    """With lower-case names."""
    body: bytes = b""
    is_truncated: bool = False
    location: str = ""
    """Where a redirect leads, as a whole URL; empty where it is none."""


@dataclass(frozen=True)
class WebDocument:
    """What was read at an address, at a time."""

    url: str
    """After redirects."""
    content_type: str
    """Lower case, without parameters; empty where the server did not say."""
    charset: str
    body: bytes
    read_at: datetime
    is_truncated: bool = False
    validators: Mapping[str, str] = field(default_factory=dict)
    """Headers that ask for the document only if it has changed."""


@dataclass(frozen=True)
class Link:
    """An address that a page links to."""

    url: str
    text: str


@dataclass(frozen=True)
class PageText:
    """The main text of a page."""

    text: str
    """Markdown."""
    title: str = ""
    date: str = ""
    """Of publication, as 2026-11-20; empty where the page does not say."""
    author: str = ""
    links: Sequence[Link] = ()
    """All links of the page, in its order, without repetitions."""
    parts: Sequence[PagePassage] = ()
    """The passages of a file, as its reader cut them; of a page none, whose text is cut where it is cited."""
    is_cut: bool = False
    """Whether the end of a long file is missing."""
    is_sitemap: bool = False
    """Whether it is a list of addresses for programs (sitemaps.org), and they are its links."""


@dataclass(frozen=True)
class Page:
    """A page as it was read."""

    url: str
    text: PageText
    read_at: datetime
    is_truncated: bool = False
