"""E-books: the chapters in the order of the spine, each read as the web page that it is. A chapter without a heading of its own
gets its title from the table of contents."""

import posixpath
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser

from services.ingest.reading.decoding import decode
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.office.package import Package, damaged, encrypted, open_package
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.parsers.web.html import blocks_of_html, without_empty_elements
from services.ingest.reading.parsers.web.html_bounds import bounded_html
from services.ingest.reading.source import Source

_OPF = "{http://www.idpf.org/2007/opf}"
_NCX = "{http://www.daisy.org/z3986/2005/ncx/}"
_DC_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_ENCRYPTED_METHOD = "{http://www.w3.org/2001/04/xmlenc#}EncryptionMethod"
# Obfuscated fonts are no protection of the text (EPUB 3.3, section 4.4).
_FONT_METHODS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
_PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
_MAX_CHAPTERS = 5000


def parse_epub(source: Source, name: str) -> ParsedDocument:
    """Reads the chapters. Raises DocumentRejected: FILE_DAMAGED, FILE_ENCRYPTED, ARCHIVE_BOMB, UNSAFE_XML."""
    with open_package(source, name) as package:
        _check_unprotected(package)
        opf_part = _opf_part(package)
        package.required(opf_part)
        opf = package.xml(opf_part)
        if opf is None:
            raise damaged(name, "its list of contents cannot be read")
        chapters = _spine(opf, posixpath.dirname(opf_part))
        if not chapters:
            raise damaged(name, "its list of contents names no chapters")
        titles = _contents(package, opf, posixpath.dirname(opf_part))
        blocks = tuple(block for part in chapters for block in _chapter(package, part, titles.get(part.lower(), "")))
        if not blocks and not any(package.has(part) for part in chapters):
            raise damaged(name, "none of its chapters is in it")
        return ParsedDocument(
            title_or_name(opf.findtext(f".//{_DC_TITLE}"), name), blocks, warnings=tuple(package.warnings)
        )


def _check_unprotected(package: Package) -> None:
    root = package.xml("META-INF/encryption.xml")
    methods = [element.get("Algorithm") for element in root.iter(_ENCRYPTED_METHOD)] if root is not None else []
    if package.has("META-INF/rights.xml") or any(method not in _FONT_METHODS for method in methods):
        raise encrypted(package.name)


def _opf_part(package: Package) -> str:
    container = package.xml("META-INF/container.xml")
    for element in container.iter() if container is not None else ():
        path = element.get("full-path")
        if path and package.has(path):
            return str(path)
    return next((part for part in package.parts() if part.endswith(".opf")), "META-INF/container.xml")


def _spine(opf: Any, folder: str) -> list[str]:
    """Parts of the chapters in reading order."""
    items = {item.get("id"): item for item in opf.iter(f"{_OPF}item")}
    order = [items[ref.get("idref")] for ref in opf.iter(f"{_OPF}itemref") if ref.get("idref") in items]
    pages = [item for item in order if item.get("media-type") in _PAGES and "nav" not in _properties(item)]
    return list(dict.fromkeys(_resolved(folder, item.get("href") or "") for item in pages))[:_MAX_CHAPTERS]


def _properties(item: Any) -> list[str]:
    return (item.get("properties") or "").split()


def _contents(package: Package, opf: Any, folder: str) -> dict[str, str]:
    """The first title that the table of contents gives to a part, by the part's name in lower case."""
    titles: dict[str, str] = {}
    seen: set[str] = set()
    for item in opf.iter(f"{_OPF}item"):
        part = _resolved(folder, item.get("href") or "")
        if part in seen:
            continue
        seen.add(part)
        if "nav" in _properties(item):
            links = _nav_links(package.read(part) or b"")
        elif item.get("media-type") == "application/x-dtbncx+xml":
            links = _ncx_links(package.xml(part))
        else:
            continue
        for href, title in links:
            titles.setdefault(_resolved(posixpath.dirname(part), href).lower(), " ".join(title.split()))
    return titles


def _nav_links(data: bytes) -> Iterator[tuple[str, str]]:
    text = bounded_html(without_empty_elements(decode(data, is_html=True).text))
    for link in LexborHTMLParser(text).css("nav a[href]"):
        yield link.attributes.get("href") or "", link.text()


def _ncx_links(root: Any) -> Iterator[tuple[str, str]]:
    for point in root.iter(f"{_NCX}navPoint") if root is not None else ():
        content = point.find(f"{_NCX}content")
        yield (
            (content.get("src") or "" if content is not None else ""),
            point.findtext(f"{_NCX}navLabel/{_NCX}text") or "",
        )


def _chapter(package: Package, part: str, title: str) -> list[Block]:
    data = package.read(part)
    if data is None:
        package.warnings.append(f"the chapter {part} is missing or damaged and was left out")
        return []
    blocks = blocks_of_html(without_empty_elements(decode(data, is_html=True).text))
    if title and blocks and not any(block.kind is BlockKind.HEADING for block in blocks[:3]):
        return [Block(BlockKind.HEADING, title, level=1), *blocks]
    return blocks


def _resolved(folder: str, href: str) -> str:
    """The part that a link names, without its fragment."""
    return posixpath.normpath(posixpath.join("/", folder, unquote(re.sub(r"[#?].*", "", href)))).lstrip("/")
