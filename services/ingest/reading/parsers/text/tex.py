"""LaTeX: sections are headings, items of lists have their marks and numbers, tables are rows, and the words within commands are
kept. Formulas and what stands before the text stay as they are written."""

import re
from collections.abc import Iterator

from services.ingest.reading.decoding import decode
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.tables.rows import table_rows
from services.ingest.reading.parsers.tables.table_values import with_shifted
from services.ingest.reading.parsers.text.plain import encoding_warnings, paragraphs
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.source import Source

_OPTION = r"(?:\[[^\]]{0,300}\])?"
_ARGUMENT = r"\{((?:[^{}]|\{[^{}]{0,1000}\}){0,2000}+)\}"
_COMMENT = re.compile(r"(?<!\\)%[^\n]*\n?")
_CODE_EDGE = re.compile(r"(\\(?:begin|end)\{(?:verbatim\*?|lstlisting|minted)\})")
_BEGIN = re.compile(r"\\begin\{document\}")
_TITLE = re.compile(r"\\title" + _OPTION + _ARGUMENT)
_LEVELS = {
    "part": 1,
    "chapter": 1,
    "section": 2,
    "subsection": 3,
    "subsubsection": 4,
    "paragraph": 5,
    "subparagraph": 6,
}
_PART = re.compile(
    rf"\\(?P<heading>{'|'.join(_LEVELS)})\*?{_OPTION}{_ARGUMENT}"
    r"|\\begin\{(?P<kept>verbatim\*?|lstlisting|minted|tabular[*x]?|longtable)\}"
    rf"|\\(?P<side>begin|end)\{{(?P<list>enumerate|itemize|description)\}}{_OPTION}"
    r"|\\item\b[ \t]*(?:\[(?P<label>[^\]]{0,300})\])?"
)
_COLUMNS = re.compile(r"^(?:\[[^\]]{0,300}\]|\{(?:[^{}]|\{(?:[^{}]|\{[^{}]{0,300}+\}){0,300}+\}){0,300}+\}){0,9}+")
"""What stands behind the beginning of a table: its place, its width, the look of its columns."""
_RULE = re.compile(
    r"\\(?:hline|toprule|midrule|bottomrule|endhead|endfirsthead|endfoot|cline\{[^}]{0,20}\}|cmidrule(?:\([^)]{0,20}\))?\{[^}]{0,20}\})"
)
_ROW_END = re.compile(r"\\\\(?:\[[^\]]{0,20}\])?")
_CELL_END = re.compile(r"(?<!\\)&")
_DROPPED = re.compile(
    r"\\(?:label|vspace|hspace|includegraphics|bibliographystyle|usepackage|pagestyle|thispagestyle)\*?"
    rf"{_OPTION}\{{[^{{}}]{{0,300}}\}}"
    rf"|\\(?:begin|end)\{{[^{{}}]{{0,100}}\}}{_OPTION}"
    r"|\\(?:maketitle|tableofcontents|newpage|clearpage|centering|noindent|par|bigskip|medskip|smallskip)\b[ \t]*"
)
_NOTE = re.compile(r"\\footnote" + _ARGUMENT)
_STYLED = re.compile(
    r"\\(?:text(?:bf|it|tt|sc|sf|rm|up|md|normal)|emph|underline|mbox|title|author|date|caption|url)\*?" + _ARGUMENT
)
_SHIFTED = re.compile(r"(\S*)\\text(super|sub)script" + _ARGUMENT)
_NAMED = re.compile(r"\\(?:cite[tp]?|ref|eqref|autoref|cref)\*?" + _OPTION + _ARGUMENT)
_ESCAPED = re.compile(r"\\([&%$#_{}])")
_MAX_DEPTH = 8


def parse_tex(source: Source, name: str) -> ParsedDocument:
    """Reads a document or a part of one. Its title is that of \\title."""
    decoded = decode(source.read_bytes())
    text = _without_comments(decoded.text.replace("\r\n", "\n").replace("\r", "\n"))
    title = _TITLE.search(text)
    begin = _BEGIN.search(text)
    before = text[: begin.start()].strip() if begin else ""
    blocks = [Block(BlockKind.CODE, before)] if before else []
    blocks += _blocks(text[begin.end() :] if begin else text)
    return ParsedDocument(
        title_or_name(_words(title[1]) if title else None, name), tuple(blocks), warnings=encoding_warnings(decoded)
    )


def _without_comments(text: str) -> str:
    """Listings keep theirs: there the sign is no mark."""
    parts = _CODE_EDGE.split(text)
    edges = ("", *parts[1::2])
    listed = [edge.startswith("\\begin") for edge in edges]
    kept = (part if is_listed else _COMMENT.sub("", part) for part, is_listed in zip(parts[::2], listed, strict=True))
    return "".join(edge + part for edge, part in zip(edges, kept, strict=True))


def _blocks(text: str) -> Iterator[Block]:
    lists: list[int | None] = []
    """For each open list the number of its last item, None where it has none."""
    unclosed: set[str] = set()
    marker, end = "", 0
    while part := _PART.search(text, end):
        yield from _text(text[end : part.start()], marker, len(lists))
        marker, end = "", part.end()
        if part["heading"]:
            yield Block(BlockKind.HEADING, _words(part[2]), level=_LEVELS[part["heading"]])
        elif kind := part["kept"]:
            closing = f"\\end{{{kind}}}"
            stop = -1 if kind in unclosed else text.find(closing, end)
            if stop < 0:
                unclosed.add(kind)  # looked for once
                continue
            yield from _kept(kind, text[end:stop])
            end = stop + len(closing)
        elif part["side"] == "begin":
            lists.append(0 if part["list"] == "enumerate" else None)
        elif part["side"]:
            lists[-1:] = []
        elif lists:
            if lists[-1] is not None:
                lists[-1] += 1
            marker = f"{_words(part['label'])} " if part["label"] else "- " if lists[-1] is None else f"{lists[-1]}. "
    yield from _text(text[end:], marker, len(lists))


def _text(text: str, marker: str, depth: int) -> Iterator[Block]:
    indent = "  " * min(depth - 1, _MAX_DEPTH)
    for block in paragraphs(text):
        if words := _words(block.text):
            yield Block(BlockKind.LIST, f"{indent}{marker}{words}") if depth else Block(BlockKind.TEXT, words)
            marker = ""


def _kept(kind: str, inside: str) -> Iterator[Block]:
    """What stands in an environment that is not running text: code as it is, a table by its rows."""
    if not kind.startswith(("tabular", "longtable")):
        if code := inside.strip("\n"):
            yield Block(BlockKind.CODE, code)
        return
    rows = _ROW_END.split(_RULE.sub("", _COLUMNS.sub("", inside, count=1)))
    cells = ([" ".join(_words(cell).split()) for cell in _CELL_END.split(row)] for row in rows)
    yield from table_rows([row for row in cells if any(row)])


def _words(text: str) -> str:
    """The words of a text without its commands."""
    text = _NOTE.sub(r" (\1)", _DROPPED.sub("", text))
    for _ in range(3):  # styles within styles
        text = _STYLED.sub(r"\1", text)
    text = _SHIFTED.sub(lambda found: with_shifted([(found[1], 0), (found[3], 1 if found[2] == "super" else -1)]), text)
    text = _NAMED.sub(r"[\1]", text).replace("\\,", " ").replace("~", " ")
    return _ESCAPED.sub(r"\1", _ROW_END.sub("\n", text)).strip()
