"""What a page of the web and a sitemap say of other pages, and what their documents are called."""

import codecs
import contextlib
from urllib.parse import urljoin, urlsplit

from defusedxml import ElementTree
from selectolax.lexbor import LexborHTMLParser

_URL_CHARACTERS_MOST = 2_000
_LINKS_MOST = 10_000
"""Of one page."""
_HEAD_BYTES = 4_096


def links_of(body: bytes, url: str) -> tuple[str, ...]:
    """The addresses that a page links to, each once, in its order."""
    tree = LexborHTMLParser(body)
    base = tree.css_first("base[href]")
    below = urljoin(url, (base.attributes.get("href") or "") if base else "")
    found: dict[str, None] = {}
    for anchor in tree.css("a[href]"):
        if "nofollow" not in (anchor.attributes.get("rel") or "").lower():
            with contextlib.suppress(ValueError):
                link = plain_url(urljoin(below, (anchor.attributes.get("href") or "").strip()))
                if link.startswith("http") and len(link) <= _URL_CHARACTERS_MOST:
                    found[link] = None
        if len(found) >= _LINKS_MOST:
            break
    return tuple(found)


def sitemap_of(body: bytes) -> tuple[list[str], list[str]] | None:
    """The pages and the sitemaps that a sitemap names (sitemaps.org); None for anything else."""
    with contextlib.suppress(ElementTree.ParseError, ValueError):
        tree = ElementTree.fromstring(body)
        name = tree.tag.rpartition("}")[2]
        if name in ("urlset", "sitemapindex"):
            found = []
            for each in tree.iterfind("{*}*/{*}loc"):
                with contextlib.suppress(ValueError):
                    found.append(plain_url("".join(each.itertext()).strip()))
            found = [url for url in found if len(url) <= _URL_CHARACTERS_MOST]
            return (found, []) if name == "urlset" else ([], found)
    return None


def looks_like_sitemap(body: bytes) -> bool:
    """Whether XML that cannot be parsed began as a sitemap."""
    return b"<urlset" in body[:_HEAD_BYTES] or b"<sitemapindex" in body[:_HEAD_BYTES]


def site_of(url: str) -> str:
    """The host, and port, of an address; the same for a host and its twin that begins with www."""
    return urlsplit(url).netloc.lower().removeprefix("www.")


def plain_url(url: str) -> str:
    """Without its fragment, and with a path."""
    parts = urlsplit(url)
    return parts._replace(fragment="", path=parts.path or "/", netloc=parts.netloc.lower()).geturl()


def document_name(url: str, *, is_page: bool) -> str:
    """A document's name for an address: its path, with an ending that says what it is."""
    parts = urlsplit(url)
    path = "/".join(part for part in parts.path.split("/") if part.strip(". "))
    name = f"{path}/index" if parts.path.endswith("/") and path else path or "index"
    name = f"{name}?{parts.query}".replace("/?", "?") if parts.query else name
    return f"{name}.html" if is_page and not name.lower().endswith((".html", ".htm", ".xhtml", ".xml")) else name


def known_encoding(charset: str) -> str:
    try:
        return codecs.lookup(charset).name if charset else ""
    except LookupError:
        return ""
