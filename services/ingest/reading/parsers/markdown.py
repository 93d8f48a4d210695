"""Markdown through its own grammar (CommonMark with tables), so that a '#' in a code block is no heading. Marks are dropped,
words are kept; a table row repeats its column names; code is kept as it is."""

import re
from collections.abc import Iterator, Sequence

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from services.ingest.reading.decoding import decode
from services.ingest.reading.models import Block, BlockKind, ParsedDocument
from services.ingest.reading.parsers.html import blocks_of_html
from services.ingest.reading.parsers.plain import encoding_warnings
from services.ingest.reading.parsers.tables import table_rows
from services.ingest.reading.parsers.titles import title_or_name
from services.ingest.reading.source import Source

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_MAX_INDENT = 8
_OPENING = "[<`"
_FEW_STEPS = 100_000
"""Characters times opening marks of an ordinary paragraph: one of 2 000 characters with 50 links."""
_INLINE_STEPS = 20_000_000
"""Of all other paragraphs together: some seconds."""
_FRONT_TITLE = re.compile(r"^title:[ \t]*+(\S.*)$", re.MULTILINE | re.IGNORECASE)


def parse_markdown(source: Source, name: str) -> ParsedDocument:
    """Reads a Markdown file. Its title is the front matter's, else the only first-level heading's,
    else that of a heading at the very top, else the file's name."""
    decoded = decode(source.read_bytes())
    text = decoded.text.replace("\r\n", "\n").replace("\r", "\n")
    front = _FRONT_MATTER.match(text)
    body = text[front.end() :] if front else text
    blocks = tuple(_blocks(_grammar().parse(body)))
    title = _FRONT_TITLE.search(front[1]) if front else None
    top = [block.text for block in blocks if block.kind is BlockKind.HEADING and block.level == 1]
    opening = blocks[0].text if blocks and blocks[0].kind is BlockKind.HEADING else None
    found = _unquoted(title[1]) if title else top[0] if len(top) == 1 else opening
    return ParsedDocument(title_or_name(found, name), blocks, warnings=encoding_warnings(decoded))


def _unquoted(value: str) -> str:
    value = value.rstrip()
    return value[1 if value[0] in "\"'" else 0 :].removesuffix('"').removesuffix("'")


def _grammar() -> MarkdownIt:
    grammar = MarkdownIt("commonmark").enable("table")
    grammar.core.ruler.at("inline", _read_inline)
    return grammar


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
    depth = 0
    while i < len(tokens):
        token = tokens[i]
        if token.type == "table_open":
            end = next(j for j in range(i, len(tokens)) if tokens[j].type == "table_close")
            yield from _table(tokens[i:end])
            i = end
        elif token.type == "heading_open":
            yield Block(BlockKind.HEADING, inline_text(tokens[i + 1]), level=int(token.tag[1]))
            i += 2
        elif token.type in ("list_item_open", "list_item_close"):
            depth += token.nesting
        else:
            yield from _leaf(token, depth)
        i += 1


def _leaf(token: Token, depth: int) -> Iterator[Block]:
    if token.type in ("fence", "code_block") and token.content.strip():
        yield Block(BlockKind.CODE, token.content.rstrip("\n"))
    elif token.type == "html_block":
        yield from (block for block in blocks_of_html(token.content) if block.text.strip())
    elif token.type == "inline" and (text := inline_text(token)).strip():
        marker = "  " * min(depth - 1, _MAX_INDENT) + "- " if depth else ""
        yield Block(BlockKind.LIST if depth else BlockKind.TEXT, marker + text)


def _table(tokens: Sequence[Token]) -> Iterator[Block]:
    rows: list[list[str]] = []
    for i, token in enumerate(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            rows[-1].append(" ".join(inline_text(tokens[i + 1]).split()))
    yield from table_rows(rows, header_rows=1)


def inline_text(token: Token) -> str:
    """The words of an inline token: link and image texts, code, breaks; no addresses, no marks."""
    parts = []
    for child in token.children or []:
        if child.type in ("text", "code_inline"):
            parts.append(child.content)
        elif child.type == "softbreak":
            parts.append(" ")
        elif child.type == "hardbreak":
            parts.append("\n")
        elif child.type == "image":
            parts.append(child.content)
    return "".join(parts)
