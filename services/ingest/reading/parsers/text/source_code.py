"""Source code and settings: each function, class or block of settings is a unit that stays whole, below the names of what encloses
it. Units are found by indentation, which every language uses alike: one begins where a line stands as far left as the first."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from services.ingest.reading.decoding import decode
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.text.plain import encoding_warnings
from services.ingest.reading.source import Source

_LONG_UNIT = 1500
"""Characters of a class that is divided into its members."""
_SHORT_UNIT = 400
"""Characters up to which units without a name, such as imports and settings, are put together."""
_MAX_DEPTH = 4
_MAX_NAME_CHARS = 120
_MAX_LINE_CHARS = 300
"""Looked at of a line."""
_KEYWORD = re.compile(
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\([^)]*\))?|virtual|override|inline"
    r"|extern|unsafe|sealed|partial|data|open|suspend|local|declare)\s++)*+"
    r"(?:class|interface|struct|enum|trait|impl|module|namespace|object|record|protocol|extension|type|def|function|func|fn|fun|sub"
    r"|procedure|package|contract|union|service|message|resource|create(?:\s+or\s+replace)?\s+\w+)\s++[\w$~<(\"'`\[]",
    re.IGNORECASE,
)
_ASSIGNED_FUNCTION = re.compile(r"(?:export\s+)?(?:const|let|var)\s+[\w$]+\s*=(?=.*(?:=>|\bfunction\b))")
_SECTION = re.compile(r"\[[^\]]+\]$|[\w.\"'-]+:$")
_STATEMENTS = ("return", "if", "for", "while", "else", "switch", "throw", "await", "yield", "assert", "print", "with", "not", "new",
               "case", "raise", "echo", "select", "insert", "update", "delete", "import", "from", "#")  # fmt: skip
_CLOSING = re.compile(
    r"^\s*(?:[)}\]].*|[{(]|end\b.*|</.*|else\b.*|elif\b.*|except\b.*|finally\b.*|catch\b.*|\*+/?.*|#\})\s*$"
)
_QUOTES = re.compile("\"\"\"|'''")
_DOLLAR_QUOTE = re.compile(r"\$\w*\$")
_ROUTINE = re.compile(
    r"\s*(?:create|alter)\s+(?:or\s+(?:replace|alter)\s+)?(?:definer\s*=\s*\S+\s+)?(?:function|procedure|proc|trigger|package|event)\b",
    re.IGNORECASE,
)
_OPENS = re.compile(r"(?<!end )\b(?:begin|case|if|loop|while)\b(?!\s+(?:not\s+)?exists\b)", re.IGNORECASE)
_ENDS = re.compile(r"\bend\b", re.IGNORECASE)
_ENDS_STATEMENT = re.compile(r"(?:;|;?\s*(?://|\$\$))\s*$")
_BATCH = re.compile(r"\s*(?:go|/)\s*$", re.IGNORECASE)
_INI_SECTION = re.compile(r"^\[{1,2}[\w.:\"' -]+\]{1,2}\s*$")
_LEADING = re.compile(r"^\s*(?:@|#(?!\w)|//|/\*|\*|--|;|\"\"\"|'''|\[\w+[(\]]|<!--|template\s*<)")


def parse_code(source: Source, name: str) -> ParsedDocument:
    """Reads a file of code or settings. Its title is its path."""
    decoded = decode(source.read_bytes())
    blocks = tuple(sql_blocks(decoded.text) if name.lower().endswith(".sql") else code_blocks(decoded.text))
    return ParsedDocument(name, blocks, warnings=encoding_warnings(decoded))


def code_blocks(text: str) -> Iterator[Block]:
    """One block a unit, or a member of a long one; small units without a name are put together."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4).split("\n")
    yield from _blocks(lines, ())


def sql_blocks(text: str) -> Iterator[Block]:
    """One block a definition, whose statements stand as far left as it does; other short statements are put together."""
    held: list[str] = []
    for statement in _statements(text.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4).split("\n")):
        if _name(statement) or sum(map(len, (*held, *statement))) > _SHORT_UNIT:
            yield from _block(held, ())
            held = []
        if _name(statement):
            yield from _block(statement, ())
        else:
            held += statement
    yield from _block(held, ())


def _statements(lines: Sequence[str]) -> Iterator[list[str]]:
    """Lines up to the semicolon that ends a statement: not one between dollar quotes, or between BEGIN and END."""
    statement: list[str] = []
    is_quoted, depth, is_routine = False, 0, False
    for line in lines:
        statement.append(line)
        code = line.partition("--")[0]
        is_quoted ^= len(_DOLLAR_QUOTE.findall(code)) % 2 == 1
        is_routine = is_routine or bool(_ROUTINE.match(code))
        if is_routine and not is_quoted:
            depth += len(_OPENS.findall(code)) - len(_ENDS.findall(code))
        if not is_quoted and depth <= 0 and (_ENDS_STATEMENT.search(code) or _BATCH.match(code)):
            yield statement
            statement, depth, is_routine = [], 0, False
    if statement:
        yield statement


def _blocks(lines: Sequence[str], above: tuple[str, ...]) -> Iterator[Block]:
    held: list[str] = []
    for unit in _units(lines):
        name = _name(unit)
        size = sum(map(len, unit))
        if name or sum(map(len, held)) + size > _SHORT_UNIT:
            yield from _block(held, above)
            held = []
        if name and size > _LONG_UNIT and len(above) < _MAX_DEPTH and (parts := _members(unit)):
            head, members = parts
            yield from _block(head, above)
            yield from _blocks(members, (*above, name))
        elif name:
            yield from _block(unit, above)
        else:
            held += unit
    yield from _block(held, above)


def _block(lines: Sequence[str], above: tuple[str, ...]) -> Iterator[Block]:
    text = "\n".join(lines).strip("\n")
    if text.strip():
        yield Block(BlockKind.CODE, text, label=_name(lines), context=above)


def _units(lines: Sequence[str]) -> Iterator[list[str]]:
    """Lines from one that stands as far left as the first to the next such, with the comments and marks above it."""
    quotes = list(accumulate(lines, lambda quote, line: _quote_behind(line, quote), initial=""))
    left = min(
        (_indent(line) for line, quote in zip(lines, quotes, strict=False) if line.strip() and not quote), default=0
    )
    has_sections = any(map(_INI_SECTION.match, lines))
    unit: list[str] = []
    has_body = False
    for line, quote in zip(lines, quotes, strict=False):
        if quote:
            begins = False
        elif has_sections:
            begins = bool(_INI_SECTION.match(line))
        else:
            begins = bool(line.strip()) and _indent(line) <= left and not _CLOSING.match(line)
        if begins and has_body:
            yield unit
            unit, has_body = [], False
        unit.append(line)
        has_body = has_body or (bool(line.strip()) and not _LEADING.match(line))
    if unit:
        yield unit


def _quote_behind(line: str, quote: str) -> str:
    """The marks of the text of several lines that a line leaves open; empty where it leaves none."""
    for mark in _QUOTES.findall(line.partition("#")[0] if not quote else line):
        quote = "" if mark == quote else quote or mark
    return quote


def _members(unit: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """The lines that begin a unit, and those within it; None where it has no members of its own."""
    at = next((at for at, line in enumerate(unit) if _defines(line)), 0)
    left = _indent(unit[at])
    inner = next((n for n in range(at + 1, len(unit)) if unit[n].strip() and _indent(unit[n]) > left), None)
    if inner is None or not any(_defines(line) for line in unit[inner:] if _indent(line) == _indent(unit[inner])):
        return None
    return list(unit[:inner]), list(unit[inner:])


def _defines(line: str) -> bool:
    """Whether a line begins a definition: of a class, a function, a section of settings."""
    line = line[:_MAX_LINE_CHARS].strip()
    if _KEYWORD.match(line) or _ASSIGNED_FUNCTION.match(line) or _SECTION.match(line):
        return True
    head, parenthesis, _ = line.partition("(")
    is_signature = bool(parenthesis) and line.endswith(("{", ")", ",")) and "=" not in head and len(head.split()) > 1
    return is_signature and head.split()[0].lower() not in _STATEMENTS


def _name(lines: Sequence[str]) -> str:
    """The line that says what a unit defines; empty where none does."""
    filled = [line for line in lines if line.strip()]
    first = next((line for line in filled if _INI_SECTION.match(line) or not _LEADING.match(line)), "")
    return first.strip().rstrip("{:( ")[:_MAX_NAME_CHARS] if _defines(first) else ""


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))
