"""Writes small OpenDocument files for tests, part by part."""

import zipfile

from tests.unit.ingest.office_files import zip_of

_NAMES = ("office", "text", "table", "style", "drawing", "manifest", "presentation")
_PREFIXES = {"drawing": "draw"}
_SPACES = " ".join(
    f'xmlns:{_PREFIXES.get(name, name)}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in _NAMES
)


def opendocument_parts(kind: str, body: str, *, styles: str = "", title: str = "") -> dict[str, str | bytes]:
    """The parts of a file of this kind ("text", "spreadsheet", "presentation") whose body is this XML."""
    content = f"<office:automatic-styles>{styles}</office:automatic-styles>"
    content += f"<office:body><office:{kind}>{body}</office:{kind}></office:body>"
    dc = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
    return {
        "mimetype": f"application/vnd.oasis.opendocument.{kind}",
        "META-INF/manifest.xml": f"<manifest:manifest {_SPACES}/>",
        "content.xml": f"<office:document-content {_SPACES}>{content}</office:document-content>",
        "meta.xml": f"<office:document-meta {_SPACES} {dc}><dc:title>{title}</dc:title></office:document-meta>",
    }


def opendocument_of(kind: str, body: str, *, styles: str = "", title: str = "") -> bytes:
    """A file of this kind, which says so at its beginning."""
    return zip_of(opendocument_parts(kind, body, styles=styles, title=title), compression=zipfile.ZIP_STORED)


def paragraph(text: str) -> str:
    return f"<text:p>{text}</text:p>"


def cell(text: str, attributes: str = "") -> str:
    return f"<table:table-cell {attributes}>{paragraph(text) if text else ''}</table:table-cell>"


def number_cell(value: float, shown: str) -> str:
    return cell(shown, f'office:value-type="float" office:value="{value}"')


def table(rows: list[list[str]], *, name: str = "Sheet1", attributes: str = "") -> str:
    """A table or sheet of these cells."""
    inner = "".join(f"<table:table-row>{''.join(row)}</table:table-row>" for row in rows)
    return f'<table:table table:name="{name}" {attributes}>{inner}</table:table>'
