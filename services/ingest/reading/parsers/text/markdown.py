"""Markdown through its own grammar (CommonMark with tables), so that a '#' in a code block is no heading. Marks are dropped,
words are kept; a table row repeats its column names; code is kept as it is."""

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.rules_block.table import escapedSplit
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from services.ingest.reading.decoding import decode
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.losses import left_out
from services.ingest.reading.parsers.tables.rows import table_rows
from services.ingest.reading.parsers.tables.table_values import with_shifted
from services.ingest.reading.parsers.text.plain import encoding_warnings
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.parsers.web.html import blocks_of_html
from services.ingest.reading.source import Source

_FRONT_MATTER = re.compile(
    r"\A(?:---[ \t]*\n(.*?\n)(?:---|\.\.\.)|\+\+\+[ \t]*\n(.*?\n)\+\+\+)[ \t]*(?:\n|\Z)", re.DOTALL
)
_TAG = re.compile(r"<(/?)(br|sup|sub|s|del|strike)\b[^<>]*>", re.IGNORECASE)
_SHIFTS = {"sup": 1, "sub": -1}
_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)[^`]{1,200}\1(?!`)")
_BAR = re.compile(r"(?<!\\)\|")
_LONGEST_ROW = 100_000
_MAX_INDENT = 8
_OPENING = "[<`"
_FEW_STEPS = 100_000
"""Characters times opening marks of an ordinary paragraph: one of 2 000 characters with 50 links."""
_INLINE_STEPS = 20_000_000
"""Of all other paragraphs together: some seconds."""
_FRONT_TITLE = re.compile(r"^title[ \t]*[:=][ \t]*+(\S.*)$", re.MULTILINE | re.IGNORECASE)


def parse_markdown(source: Source, name: str) -> ParsedDocument:
    """Reads a Markdown file. Its title is the front matter's, else the only first-level heading's,
    else that of a heading at the very top, else the file's name."""
    decoded = decode(source.read_bytes())
    text = decoded.text.replace("\r\n", "\n").replace("\r", "\n")
    front = _FRONT_MATTER.match(text)
    body = text[front.end() :] if front else text
    tokens = _grammar().parse(body)
    blocks = tuple(_blocks(tokens))
    fields = (front[1] or front[2]) if front else ""
    title = _FRONT_TITLE.search(fields)
    top = [block.text for block in blocks if block.kind is BlockKind.HEADING and block.level == 1]
    opening = blocks[0].text if blocks and blocks[0].kind is BlockKind.HEADING else None
    found = _unquoted(title[1]) if title else top[0] if len(top) == 1 else opening
    kept = tuple(Block(BlockKind.LIST, line.rstrip()) for line in fields.split("\n") if line.strip())
    warnings = (*encoding_warnings(decoded), *left_out(_struck_count(tokens), "struck-out passage"))
    return ParsedDocument(title_or_name(found, name), kept + blocks, warnings=warnings)


def blocks_of_markdown(text: str) -> list[Block]:
    """Blocks of a piece of Markdown, as found in notebooks."""
    return list(_blocks(_grammar().parse(text)))


def _struck_count(tokens: Sequence[Token]) -> int:
    """Passages that are crossed out: what replaces them stands beside them."""
    return sum(_strikes(child) > 0 for token in tokens for child in token.children or ())


def _strikes(token: Token) -> int:
    """1 where a token begins a struck passage, -1 where it ends one."""
    if token.type in ("s_open", "s_close"):
        return token.nesting
    tag = _TAG.fullmatch(token.content) if token.type == "html_inline" else None
    return 0 if not tag or tag[2].lower() not in ("s", "del", "strike") else -1 if tag[1] else 1


def _unquoted(value: str) -> str:
    value = value.rstrip()
    return value[1 if value[0] in "\"'" else 0 :].removesuffix('"').removesuffix("'")


def _grammar() -> MarkdownIt:
    grammar = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    grammar.core.ruler.before("inline", "cells", _keep_cells)
    grammar.core.ruler.at("inline", _read_inline)
    return grammar


def _keep_cells(state: StateCore) -> None:
    """Gives rows of tables what the library leaves out: cells beyond those of the header. A bar within code begins no cell here,
    though by the rules it does."""
    lines = state.src.split("\n")
    line, kept, cells = "", list[Token](), list[Token]()
    for token in state.tokens:
        if token.type == "tr_open":
            cells, line = [], lines[token.map[0]] if token.map else ""
        elif token.type == "inline" and kept and kept[-1].type in ("td_open", "th_open"):
            cells.append(token)
        elif token.type == "tr_close" and len(_cells_of(line)) > len(cells):
            written = _cells_of(_CODE.sub(lambda code: _BAR.sub(r"\\|", code[0]), line))
            for cell, content in zip(cells, written, strict=False):
                cell.content = content
            for content in written[len(cells) :]:
                kept += (
                    Token("td_open", "td", 1),
                    Token("inline", "", 0, content=content),
                    Token("td_close", "td", -1),
                )
        kept.append(token)
    state.tokens = kept


def _cells_of(line: str) -> list[str]:
    """The cells of a row as it is written, without what a quotation has before it."""
    cells = [cell.strip() for cell in escapedSplit(line.lstrip("> \t")[:_LONGEST_ROW])]
    return cells[not cells[0] : len(cells) - (not cells[-1])]


def _read_inline(state: StateCore) -> None:
    """The library's rule of this name, but for paragraphs that would take it minutes: from each opening mark it may look for the
    closing one to the end. Their text is kept as it is."""
    budget = _INLINE_STEPS
    for token in state.tokens:
        if token.type != "inline":
            continue
        steps = len(token.content) * sum(map(token.content.count, _OPENING))
        if steps > _FEW_STEPS:
            budget -= steps
        if steps > _FEW_STEPS and budget < 0:
            token.children = [Token("text", "", 0, content=token.content)]
        else:
            token.children = []
            state.md.inline.parse(token.content, state.md, state.env, token.children)


def _blocks(tokens: Sequence[Token]) -> Iterator[Block]:
    i = 0
    lists: list[int | None] = []
    """For each open list the number of its next item, None where it has none."""
    marker = ""
    while i < len(tokens):
        token = tokens[i]
        if token.type == "table_open":
            end = next(j for j in range(i, len(tokens)) if tokens[j].type == "table_close")
            yield from _table(tokens[i:end])
            i = end
        elif token.type == "heading_open":
            yield Block(BlockKind.HEADING, inline_text(tokens[i + 1]), level=int(token.tag[1]))
            i += 2
        elif token.type in ("bullet_list_open", "ordered_list_open"):
            lists.append(int(token.attrs.get("start", 1)) if token.tag == "ol" else None)
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            lists.pop()
        elif token.type == "list_item_open":
            marker, lists[-1] = _next_marker(lists[-1])
        else:
            yield from _leaf(token, len(lists), marker)
            marker = "- " if lists and lists[-1] is None else "" if token.type == "inline" else marker
        i += 1


def _next_marker(number: int | None) -> tuple[str, int | None]:
    """The mark of an item, and the number of the next."""
    return ("- ", None) if number is None else (f"{number}. ", number + 1)


def _leaf(token: Token, depth: int, marker: str) -> Iterator[Block]:
    if token.type in ("fence", "code_block") and token.content.strip():
        yield Block(BlockKind.CODE, token.content.rstrip("\n"))
    elif token.type == "html_block":
        yield from (block for block in blocks_of_html(token.content) if block.text.strip())
    elif token.type == "inline" and (text := inline_text(token)).strip():
        indent = "  " * min(depth - 1, _MAX_INDENT)
        yield Block(BlockKind.LIST if depth else BlockKind.TEXT, f"{indent}{marker}{text}" if depth else text)


def _table(tokens: Sequence[Token]) -> Iterator[Block]:
    rows: list[list[str]] = []
    for i, token in enumerate(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            rows[-1].append(" ".join(inline_text(tokens[i + 1]).split()))
    yield from table_rows(rows, header_rows=1)


def inline_text(token: Token) -> str:
    """The words of an inline token: link and image texts, code, breaks; no addresses, no marks, nothing that is crossed out."""
    parts: list[tuple[str, int]] = []
    struck = shift = 0
    for child in token.children or []:
        struck = max(0, struck + _strikes(child))
        tag = _TAG.fullmatch(child.content) if child.type == "html_inline" else None
        if tag and tag[2].lower() in _SHIFTS:
            shift = 0 if tag[1] else _SHIFTS[tag[2].lower()]
        if child.type in ("text", "code_inline", "image") and not struck:
            parts.append((child.content, shift))
        elif child.type == "softbreak":
            parts.append((" ", 0))
        elif child.type == "hardbreak" or (tag and tag[2].lower() == "br"):
            parts.append(("\n", 0))
    return with_shifted(parts)
