"""Workbooks that are made to be slow."""

from collections.abc import Callable

from tests.unit.ingest.office_files import (
    relationships,
    sheet_rows,
    xlsx_parts,
    zip_of,
)
from tests.unit.ingest.slow.case import SlowFile

_ONE_OF_EACH = (
    "<fonts count='1'><font/></fonts><fills count='1'><fill><patternFill/></fill></fills>"
    "<borders count='1'><border/></borders>"
)
_FORMAT = (
    "<numFmts count='1'><numFmt numFmtId='170' formatCode='0.{zeros}'/></numFmts>"
    f"{_ONE_OF_EACH}<cellStyleXfs count='1'><xf/></cellStyleXfs>"
    "<cellXfs count='2'><xf/><xf numFmtId='170' applyNumberFormat='1'/></cellXfs>"
)


def _cell(row: int, column: int, text: str) -> str:
    letters, rest = "", column + 1
    while rest:
        rest, digit = divmod(rest - 1, 26)
        letters = chr(65 + digit) + letters
    return f'<c r="{letters}{row + 1}" t="inlineStr"><is><t>{text}</t></is></c>'


def _xlsx(rows: str, **more: str) -> bytes:
    return zip_of(xlsx_parts(rows, **more))


def _diagonal(n: int) -> bytes:
    return _xlsx("".join(f'<row r="{i + 1}">{_cell(i, i, f"v{i}")}</row>' for i in range(n)))


def _steps(n: int) -> bytes:
    """Tables of two columns and two rows, each to the right of and below the one before."""
    rows = [
        f'<row r="{i + 1}">{_cell(i, 4 * (i // 2), f"a{i}")}{_cell(i, 4 * (i // 2) + 1, f"b{i}")}</row>'
        for i in range(n)
    ]
    return _xlsx("".join(rows))


def _wide_header(n: int) -> bytes:
    head = "".join(_cell(0, i, f"name{i}") for i in range(n))
    body = "".join(f'<row r="{i + 2}">{_cell(i + 1, 0, f"x{i}")}{_cell(i + 1, 1, f"y{i}")}</row>' for i in range(n))
    return _xlsx(f'<row r="1">{head}</row>{body}')


def _merged(n: int) -> bytes:
    """Each of n columns has one cell that reaches over all n rows."""
    rows = f'<row r="1">{"".join(_cell(0, i, "x" * 20) for i in range(n))}</row>' + "".join(
        f'<row r="{i + 1}">{_cell(i, n + 1, "y")}</row>' for i in range(1, n)
    )
    names = ["".join(filter(str.isalpha, _cell(0, i, "").split('"')[1])) for i in range(n)]
    return _xlsx(rows, merged="".join(f'<mergeCell ref="{name}1:{name}{n}"/>' for name in names))


def _merge_marks(n: int) -> bytes:
    return _xlsx(sheet_rows([["a", "b"]]), merged="<!-- " + "<mergeCell " * n + "-->")


def _shared_strings(n: int) -> bytes:
    parts = xlsx_parts("".join(f'<row r="{i + 1}"><c r="A{i + 1}" t="s"><v>{i}</v></c></row>' for i in range(n)))
    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    parts["xl/sharedStrings.xml"] = f"<sst {space}>" + "".join(f"<si><t>text {i}</t></si>" for i in range(n)) + "</sst>"
    parts["xl/_rels/workbook.xml.rels"] = relationships(
        {"rId1": ("worksheet", "worksheets/sheet1.xml"), "rId2": ("sharedStrings", "sharedStrings.xml")}
    )
    parts["[Content_Types].xml"] = _with_type(parts, "xl/sharedStrings.xml", "sharedStrings")
    return zip_of(parts)


def _with_type(parts: dict[str, str | bytes], part: str, kind: str) -> str:
    """The list of the parts' types with one more."""
    entry = (
        f'<Override PartName="/{part}" '
        f'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.{kind}+xml"/>'
    )
    return str(parts["[Content_Types].xml"]).replace("</Types>", f"{entry}</Types>")


def _styled(styles: Callable[[int], str], cells: Callable[[int], str] = lambda n: "") -> Callable[[int], bytes]:
    def make(n: int) -> bytes:
        parts = xlsx_parts(f'<row r="1">{cells(n) or _cell(0, 0, "a")}</row>')
        space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
        parts["xl/styles.xml"] = f"<styleSheet {space}>{styles(n)}</styleSheet>"
        parts["xl/_rels/workbook.xml.rels"] = relationships(
            {"rId1": ("worksheet", "worksheets/sheet1.xml"), "rId2": ("styles", "styles.xml")}
        )
        parts["[Content_Types].xml"] = _with_type(parts, "xl/styles.xml", "styles")
        return zip_of(parts)

    return make


def _long_format(n: int) -> str:
    return _FORMAT.format(zeros="0" * n)


def _formatted(n: int) -> str:
    return "".join(f'<c s="1"><v>{i}</v></c>' for i in range(n))


def _named_styles(n: int) -> str:
    xfs = "<xf/>" * n
    return (
        f"{_ONE_OF_EACH}<cellStyleXfs>{xfs}</cellStyleXfs><cellXfs>{xfs}</cellXfs><cellStyles>"
        + "".join(f"<cellStyle name='s{i}' xfId='{i}'/>" for i in range(n))
        + "</cellStyles>"
    )


WORKBOOKS = {
    "xlsx: diagonal": SlowFile("a.xlsx", 1_000, _diagonal),
    "xlsx: steps": SlowFile("a.xlsx", 1_000, _steps),
    "xlsx: header wider than rows": SlowFile("a.xlsx", 1_000, _wide_header),
    "xlsx: merged cells": SlowFile("a.xlsx", 100, _merged),
    "xlsx: marks of merged cells": SlowFile("a.xlsx", 20_000, _merge_marks),
    "xlsx: shared strings": SlowFile("a.xlsx", 2_000, _shared_strings),
    "xlsx: long number format": SlowFile("a.xlsx", 1_000, _styled(_long_format, _formatted)),
    "xlsx: named styles": SlowFile("a.xlsx", 500, _styled(_named_styles)),
}
