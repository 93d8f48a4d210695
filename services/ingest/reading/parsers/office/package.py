"""The ZIP container of office files and e-books, opened with distrust: nothing is written to disk, parts are read one by one, and
what would unpack to far more than a document can hold is refused before it is unpacked."""

import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lxml import etree

from services.ingest.errors import DocumentRejected
from services.ingest.reading.source import Source
from services.ingest.reading.zip_directory import read_zip_directory

MAX_PART_BYTES = 256 * 1024 * 1024
"""Of one part, unpacked. A novel's document.xml has 10 MB, a sheet of a million cells 60 MB."""
_MAX_TOTAL_BYTES = 2 * 1024**3
_MAX_ENTRIES = 20_000
_MAX_DIRECTORY_BYTES = 8 * 1024 * 1024
_MAX_RATIO = 250
"""Of unpacked to packed bytes. Sheets of repeated cells reach 100; deflate cannot exceed 1 032, which bombs do reach."""
_RATIO_MATTERS_BYTES = 4 * 1024 * 1024
_ENCRYPTED_FLAG = 0x1
_OFFICE = b"http://schemas.openxmlformats.org/"
# "Strict Open XML" has namespaces of its own for the same elements (ISO/IEC 29500-1).
_STRICT_NAMESPACES = {
    b"http://purl.oclc.org/ooxml/wordprocessingml/main": _OFFICE + b"wordprocessingml/2006/main",
    b"http://purl.oclc.org/ooxml/presentationml/main": _OFFICE + b"presentationml/2006/main",
    b"http://purl.oclc.org/ooxml/drawingml/main": _OFFICE + b"drawingml/2006/main",
    b"http://purl.oclc.org/ooxml/drawingml/picture": _OFFICE + b"drawingml/2006/picture",
    b"http://purl.oclc.org/ooxml/officeDocument/math": _OFFICE + b"officeDocument/2006/math",
    b"http://purl.oclc.org/ooxml/officeDocument/relationships": _OFFICE + b"officeDocument/2006/relationships",
}
_UNREADABLE = (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError, ValueError)
"""What zipfile raises for an archive that breaks its rules: an unknown compression is a NotImplementedError, an encrypted part a
RuntimeError, an impossible date or offset a ValueError."""


@dataclass(frozen=True)
class Relationship:
    """A link from one part of an office file to another (ECMA-376 part 2). `target` is a part's name, or an address outside."""

    kind: str
    """Last segment of the type's URI: "styles", "slide", "hyperlink" …"""
    target: str


class Package:
    """An open archive. Part names are compared as office programs do it: without regard to case."""

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self.name = name
        self.warnings: list[str] = []
        self._archive = archive
        self._entries = {_normalized(entry.filename): entry for entry in archive.infolist() if not entry.is_dir()}

    @property
    def size_bytes(self) -> int:
        """Of all parts, unpacked."""
        return sum(entry.file_size for entry in self._entries.values())

    def has(self, part: str) -> bool:
        return _normalized(part) in self._entries

    def parts(self) -> list[str]:
        """Names of all parts, in lower case."""
        return list(self._entries)

    def read(self, part: str) -> bytes | None:
        """A part's bytes; None when it is missing or damaged. Raises DocumentRejected: ARCHIVE_BOMB, FILE_ENCRYPTED."""
        entry = self._entries.get(_normalized(part))
        if entry is None:
            return None
        if entry.flag_bits & _ENCRYPTED_FLAG:
            raise encrypted(self.name)
        ratio = entry.file_size / max(entry.compress_size, 1)
        if entry.file_size > MAX_PART_BYTES or (entry.file_size > _RATIO_MATTERS_BYTES and ratio > _MAX_RATIO):
            raise _bomb(self.name, f"its part {part[:80]} unpacks to {entry.file_size // 1024**2} MiB")
        try:
            return self._archive.read(entry)
        except _UNREADABLE:
            return None

    def required(self, part: str) -> bytes:
        """A part without which there is no document. Raises DocumentRejected: FILE_DAMAGED."""
        data = self.read(part)
        if data is None:
            raise damaged(self.name, f"its part {part[:80]} is {'damaged' if self.has(part) else 'missing'}")
        return data

    def xml(self, part: str) -> Any:
        """The root element of a part, or None. A part with a mistake is read as far as possible, with a warning."""
        data = self.read(part)
        if data is None:
            if self.has(part):
                self.warnings.append(f"the part {part} is damaged and was left out")
            return None
        for strict, usual in _STRICT_NAMESPACES.items():
            data = data.replace(strict, usual)
        root, whole = parse_xml(data, self.name)
        if not whole:
            self.warnings.append(f"the part {part} is damaged; what could be read of it was kept")
        return root

    def relationships(self, part: str) -> dict[str, Relationship]:
        """Where a part points to, by relationship id. The empty name stands for the package itself."""
        folder, file = posixpath.split(part)
        root = self.xml(posixpath.join(folder, "_rels", f"{file}.rels"))
        found = {}
        for element in root if root is not None else ():
            if not isinstance(element.tag, str):
                continue
            target = element.get("Target") or ""
            if element.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            found[element.get("Id") or ""] = Relationship((element.get("Type") or "").rpartition("/")[2], target)
        return found

    def main_part(self, usual: str) -> str:
        """The part that the package calls its document; `usual` where it does not say."""
        links = self.relationships("").values()
        return next((link.target for link in links if link.kind == "officeDocument" and self.has(link.target)), usual)

    def core_title(self) -> str | None:
        """The title in the file's properties."""
        links = self.relationships("").values()
        part = next((link.target for link in links if link.kind == "core-properties"), "docProps/core.xml")
        root = self.xml(part)
        return root.findtext("{http://purl.org/dc/elements/1.1/}title") if root is not None else None


@contextmanager
def open_package(source: Source, name: str) -> Iterator[Package]:
    """Opens the archive. Raises DocumentRejected: FILE_DAMAGED, ARCHIVE_BOMB."""
    with source.open("rb") as file:
        is_zip = file.read(2) == b"PK"
        directory = read_zip_directory(file)
    if directory is None:
        what = "its end is missing, it was probably cut off on its way" if is_zip else "it is not what its name says"
        raise damaged(name, what)
    if directory.entry_count > _MAX_ENTRIES or directory.size_bytes > _MAX_DIRECTORY_BYTES:
        raise _bomb(name, f"it claims to hold {directory.entry_count} parts")
    with source.open("rb") as file:
        try:
            archive = zipfile.ZipFile(file)
        except _UNREADABLE as error:
            raise damaged(name, "its table of contents cannot be read") from error
        with archive:
            _check_sizes(archive, name)
            yield Package(archive, name)


def check_xml(data: bytes, name: str) -> None:
    """Raises DocumentRejected, UNSAFE_XML, for XML in whatever encoding that defines entities."""
    if b"<!ENTITY" in (data.replace(b"\0", b"") if b"\0" in data else data):
        raise unsafe_xml(name)


def parse_xml(data: bytes, name: str) -> tuple[Any, bool]:
    """The root element (None when there is none) and whether all was well-formed. Entities are never expanded, nothing outside is
    loaded, nesting is limited (libxml2: 256 levels). Raises DocumentRejected: UNSAFE_XML."""
    check_xml(data, name)
    for recover in (False, True):
        parser = etree.XMLParser(
            resolve_entities=False,
            no_network=True,
            load_dtd=False,
            dtd_validation=False,
            huge_tree=False,
            remove_comments=True,
            remove_pis=True,
            recover=recover,
        )
        try:
            return etree.fromstring(data, parser), not recover
        except etree.XMLSyntaxError:
            continue
        except ValueError:  # an encoding that libxml2 does not know
            break
    return None, False


def damaged(name: str, what: str) -> DocumentRejected:
    """What to say of a container that cannot be read."""
    return DocumentRejected(
        "FILE_DAMAGED", f"{name} is damaged: {what}. Open it in its program, save it again and upload that"
    )


def encrypted(name: str) -> DocumentRejected:
    """What to say of a file that only a password opens."""
    return DocumentRejected(
        "FILE_ENCRYPTED", f"{name} is protected by a password or DRM; remove the protection and upload it again"
    )


def unsafe_xml(name: str) -> DocumentRejected:
    """What to say of XML that defines entities: no office program writes them, attacks do."""
    return DocumentRejected(
        "UNSAFE_XML", f"{name} defines XML entities, as attacks do; save it again in an office program and upload that"
    )


def _bomb(name: str, what: str) -> DocumentRejected:
    return DocumentRejected(
        "ARCHIVE_BOMB",
        f"{name} was not unpacked: {what}. It is damaged, or made to fill the memory of its reader; "
        "save it again in its program and upload that, or split it if it is really that large",
    )


def _check_sizes(archive: zipfile.ZipFile, name: str) -> None:
    entries = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
    total = sum(entry.file_size for entry in entries)
    if total > _MAX_TOTAL_BYTES:
        raise _bomb(name, f"its parts unpack to {total // 1024**2} MiB")
    end = 0
    for entry in entries:
        # Parts that share their bytes multiply what is unpacked (Fifield, "A better zip bomb", WOOT 2019).
        if entry.header_offset < end:
            raise _bomb(name, "its parts overlap")
        end = entry.header_offset + entry.compress_size


def _normalized(part: str) -> str:
    return part.replace("\\", "/").lstrip("/").lower()
