"""Pages and Markdown that are made to be slow."""

from collections.abc import Callable

from tests.unit.ingest.slow.case import SENTENCE, SlowFile, text_of


def _html(body: Callable[[int], str]) -> Callable[[int], bytes]:
    return lambda n: f"<html><body>{body(n)}<p>{SENTENCE}</p></body></html>".encode()


def _nested_tags(n: int, tag: str) -> str:
    return f"<{tag}>" * n + "deep" + f"</{tag}>" * n


MARKUP = {
    "html: nested": SlowFile("a.html", 20_000, _html(lambda n: _nested_tags(n, "div"))),
    "html: nested lists": SlowFile("a.html", 2_000, _html(lambda n: "<ul><li>x" * n)),
    "html: comments": SlowFile("a.html", 20_000, _html(lambda n: "<!-->" * n)),
    "html: entities": SlowFile("a.html", 5_000, _html(lambda n: "&amp&#x41;&" * n)),
    "html: table": SlowFile(
        "a.html",
        1_500,
        _html(
            lambda n: f"<table><tr><th>{'h' * n}</th><th>b</th></tr>" + "<tr><td>x</td><td>y</td></tr>" * n + "</table>"
        ),
    ),
    "html: tables in cells": SlowFile("a.html", 5_000, _html(lambda n: "<table><tr><td>" * n)),
    "html: text in tables": SlowFile("a.html", 5_000, _html(lambda n: "<table>" + "x<tr>" * n)),
    "html: style attributes": SlowFile("a.html", 2_000, _html(lambda n: "<p style='display:'>x</p>" * n)),
    "html: punycode": SlowFile("a.html", 20_000, lambda n: b"<meta charset=punycode><p>\xff-" + b"9a" * n),
    "markdown: brackets": SlowFile("a.md", 10_000, text_of(lambda n: "[" * n)),
    "markdown: closing brackets": SlowFile("a.md", 10_000, text_of(lambda n: "]" * n)),
    "markdown: stars and words": SlowFile("a.md", 1_000, text_of(lambda n: "*a **b " * n)),
    "markdown: lazy quote": SlowFile("a.md", 1_000, text_of(lambda n: "> a\n" + "b\n" * n)),
    "markdown: list items": SlowFile("a.md", 1_000, text_of(lambda n: "- a\n" * n)),
    "markdown: definitions": SlowFile("a.md", 1_000, text_of(lambda n: "".join(f"[a{i}]: /u\n" for i in range(n)))),
    "markdown: lines": SlowFile("a.md", 2_000, text_of(lambda n: "word\n" * n)),
    # Each row is completed to the width of the table: by the grammar's library up to 65 536 cells, which these go beyond.
    "markdown: columns of a table": SlowFile(
        "a.md", 300, text_of(lambda n: "|a" * n + "|\n" + "|-" * n + "|\n" + "|b|c|\n" * n)
    ),
    "markdown: front matter": SlowFile("a.md", 20_000, text_of(lambda n: f"---\ntitle: a{' ' * n}b\n---\nword")),
    "markdown: open html": SlowFile("a.md", 1_000, text_of(lambda n: "<!--\n\n" * n + "<?\n\n" * n)),
}
