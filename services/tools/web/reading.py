"""Finds the main text of a web page, without menus, advertisements and comments, by trafilatura. It runs in a process of its own: a
page is somebody else's, and may be made to take long."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urljoin, urlsplit

from services.tools.errors import ToolError
from services.tools.web.pages import URL_CHARACTERS_MAX, Link, PageText, WebFailed

TIMEOUT_S = 10.0
FILE_TIMEOUT_S = 25.0
"""For a file that is no page: a scan of some pages is read in this time."""
_HTML = ("text/html", "application/xhtml+xml")
_TEXT = ("application/json", "application/xml", "application/x-ndjson", "application/ld+json")
_BOLD = re.compile(r"\*\*(?=\S)([^*\n]+)\*\*")
_LINKS_MAX = 2_000
_ROOT_WITHIN = 2_000
_LINE_CHARACTERS_MAX = 300


def read_page(body: bytes, content_type: str, charset: str, url: str) -> PageText:
    """The text of a document of the web. Raises WebFailed where it has none."""
    if (addresses := _sitemap(body)) is not None:
        read = PageText(f"A sitemap with {len(addresses)} addresses.", "Sitemap", links=addresses, is_sitemap=True)
    elif content_type in _HTML or (not content_type and body.lstrip()[:1] == b"<"):
        read = _html(body, charset, url)
    elif not content_type or content_type.startswith("text/") or content_type in _TEXT:
        read = PageText(_decoded(body, charset))
    else:
        raise _unreadable(content_type)
    if not read.text.strip():
        raise WebFailed(
            "the page has no text of its own: it may be drawn by scripts, or hold pictures alone; try another page",
            reason="WEB_NO_TEXT",
        )
    return read


def links_of(tree: Any, url: str) -> Iterator[Link]:
    """The links of a page that lxml has parsed to other pages, each once, in its order. `url` is the page's own."""
    base = next(iter(tree.xpath("//base/@href")), "")
    seen = {url}
    for anchor in tree.iter("a"):
        target = _resolved(urljoin(url, base), anchor.get("href", ""))
        if target and target not in seen and "nofollow" not in anchor.get("rel", "").lower():
            seen.add(target)
            yield Link(target, _line(anchor.text_content()))


def _html(body: bytes, charset: str, url: str) -> PageText:
    # Only the process that reads pages needs them: it takes a quarter of a second.
    from trafilatura import extract  # noqa: PLC0415
    from trafilatura.metadata import extract_metadata  # noqa: PLC0415
    from trafilatura.utils import load_html  # noqa: PLC0415

    tree = load_html(_decoded(body, charset) if charset else body)
    if tree is None:
        return PageText("")
    known = extract_metadata(tree, date_config={"extensive_search": False, "original_date": True}, default_url=url)
    links = [link for link, _ in zip(links_of(tree, url), range(_LINKS_MAX), strict=False)]
    text = extract(
        tree, url=url, output_format="markdown", include_comments=False, include_tables=True, include_formatting=True
    )
    return PageText(
        _BOLD.sub(r"\1", text or ""),
        _line(known.title),
        _line(known.date),
        _line(known.author),
        links,
    )


def _sitemap(body: bytes) -> list[Link] | None:
    """The addresses of a sitemap or of an index of sitemaps; None for anything else."""
    if not any(root in body[:_ROOT_WITHIN] for root in (b"<urlset", b"<sitemapindex")):
        return None
    from lxml import etree  # noqa: PLC0415 - as below

    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False, recover=True)
    tree = etree.fromstring(body, parser)
    if tree is None:
        return None
    found = (_resolved("", "".join(each.itertext()).strip()) for each in tree.iter("{*}loc"))
    return [Link(url, "") for url in dict.fromkeys(found) if url][:_LINKS_MAX]


def _resolved(base: str, href: str) -> str:
    """The whole address without its fragment; empty for what is no page of the web."""
    try:
        target = urljoin(base, href.strip()).partition("#")[0]
        return target if urlsplit(target).scheme in ("http", "https") and len(target) <= URL_CHARACTERS_MAX else ""
    except ValueError:
        return ""


def _unreadable(content_type: str) -> ToolError:
    return WebFailed(
        f"the address leads to something of type {content_type[:80]}, which is neither a page nor a document; try another address",
        reason="WEB_NOT_A_PAGE",
    )


def _decoded(body: bytes, charset: str) -> str:
    try:
        return body.decode(charset or "utf-8", errors="replace")
    except LookupError:
        return body.decode(errors="replace")


def _line(text: str | None) -> str:
    return " ".join((text or "").split())[:_LINE_CHARACTERS_MAX]
