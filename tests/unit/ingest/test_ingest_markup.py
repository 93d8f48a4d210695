"""What a page in HTML or Markdown says beside its words: numbers of lists, breaks, terms, what is crossed out, front matter."""

import io
from pathlib import Path

import pytest

from services.ingest.reading.detection import detect_media_type
from services.ingest.reading.models import BlockKind, ParsedDocument
from services.ingest.reading.parsers.registry import parse


def _read(tmp_path: Path, name: str, text: str) -> ParsedDocument:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return parse(path, detect_media_type(io.BytesIO(text.encode()), name), name)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.md", "Address: Quay 4<br>Osk<br/>Lind", ["Address: Quay 4\nOsk\nLind"]),
        ("a.md", "| A | B |\n|---|---|\n| one<br>two | red<br />green |", ["A: one two; B: red green"]),
        ("a.md", "1. First\n2. Second\n   - sub\n3. Third\n\n   More\n\n7. Not seven",
         ["1. First", "2. Second", "  - sub", "3. Third", "More", "4. Not seven"]),
        ("a.md", "5. Five\n6. Six", ["5. Five", "6. Six"]),
        ("a.md", "Costs ~~300~~ 450 and <del>7</del>8, 10<sup>6</sup>", ["Costs  450 and 8, 10⁶"]),
        ("a.md", "---\ntitle: Tide\nowner: Ines Varg\ntags:\n  - sea\n---\nHigh water.",
         ["title: Tide", "owner: Ines Varg", "tags:", "  - sea", "High water."]),
        ("a.md", "+++\ntitle = \"Tide\"\n+++\nHigh water.", ['title = "Tide"', "High water."]),
        ("a.html", "<ol><li>Open<li>Wait<ul><li>a</ul><li><p>Close</p><p>Lock</p></ol>",
         ["1. Open", "2. Wait", "  - a", "3. Close", "Lock"]),
        ("a.html", '<ol start=3 type=a><li>c<li value=7>g</ol><ol reversed start=2><li>two<li>one</ol>',
         ["c. c", "g. g", "2. two", "1. one"]),
        ("a.html", "<dl><dt>Berth</dt><dd>C-14</dd><dt>Arrival:</dt><dd><p>9 July</p><p>early</p></dd><dt>Alone</dt></dl><p>End",
         ["Berth: C-14", "Arrival: 9 July", "early", "Alone", "End"]),
        ("a.html", "<dl><dt>Draught<dt>Depth:<dd>4 m<dd>less in summer<dt>Beam<dd>11 m</dl>",
         ["Draught, Depth: 4 m", "Draught, Depth: less in summer", "Beam: 11 m"]),
        ("a.html", "<table><tr><td><b>Port</b><td><strong>Depth</strong><tr><td>Osk<td>Mud<tr><td>Tarsk<td>Rock</table>",
         ["Port: Osk; Depth: Mud", "Port: Tarsk; Depth: Rock"]),
        ("a.html", "<table><tr><td><b>Port</b><td>Osk<tr><td><b>Depth</b><td>Mud</table>", ["Port: Osk", "Depth: Mud"]),
        ("a.html", "<table><caption>Berths</caption><tr><td>Name<td>No<tr><td>C<td>14</table>", ["Berths", "Name: No", "C: 14"]),
        ("a.html", "<p>Costs <s>300</s> 450, <del>not</del> due", ["Costs 450, due"]),
        ("a.html", "<ol reversed><li>x<li>y</ol>", ["2. x", "1. y"]),
        ("a.html", "<form><label><input type=radio checked> card</label> <label><input type=radio> cash</label><p><input value=Osk>"
         "<select><option>North<option selected>South</select><textarea>late</textarea></form><p>" + "text " * 20,
         ["[x] card [ ] cash", "Osk South late", ("text " * 20).strip()]),
        ("a.html", "<form><input name=q><button>Search</button></form><p>Words.", ["Words."]),
        ("a.html", "<body><form><p>A whole page stands in a form.</p></form></body>", ["A whole page stands in a form."]),
    ],
)  # fmt: skip
def test_marks_of_a_page_are_kept(tmp_path: Path, name: str, text: str, expected: list[str]) -> None:
    assert [block.text for block in _read(tmp_path, name, text).blocks] == expected


def test_what_is_crossed_out_is_counted(tmp_path: Path) -> None:
    assert _read(tmp_path, "a.html", "<p>a <s>b</s> <del>c</del>").warnings == ("2 struck-out passages were left out",)
    assert _read(tmp_path, "a.md", "a ~~b~~ c").warnings == ("1 struck-out passage was left out",)


def test_front_matter_names_the_document(tmp_path: Path) -> None:
    assert _read(tmp_path, "a.md", "---\ntitle: 'High tide'\n---\nWords.").title == "High tide"
    assert _read(tmp_path, "a.md", '+++\ntitle = "High tide"\n+++\nWords.').title == "High tide"


TEX = r"""\documentclass{article}
\title{Tides at Osk}
\begin{document}
\maketitle
\section{Methods} % a comment
Gauge A costs 40\,EUR \& \textbf{more}.\footnote{by hand} It fills 10\textsuperscript{6} m.
\subsection*{Steps}\label{s}
\begin{enumerate}
\item Open
\item Wait
\end{enumerate}
\begin{tabular}{l|r}
Month & Range \\ \hline
May & 2.3 \\
June & 2.4
\end{tabular}
\begin{verbatim}
a % b
\end{verbatim}
\end{document}
"""
ADOC = """= Harbour Guide

== Mooring
Tie up at quay 4.

. Open
. Wait

|===
|Ship |Berth

|Wega |4
|===

----
== no heading
----
=== Fees
40 EUR
"""
RST = "Guide\n=====\n\nIntro.\n\nMooring\n-------\nQuay 4.\n\nFees\n----\n40 EUR\n"
ORG = "#+TITLE: Plan\n* Mooring\nQuay 4.\n** Lines\n| Ship | Berth |\n|------+-------|\n| Wega | 4 |\n"
ORG += "#+BEGIN_SRC sh\n* x\n#+END_SRC\n"
WIKI = "== Mooring ==\n# one\n# two\n=== Lines ===\n* a\n"


@pytest.mark.parametrize(
    ("name", "text", "headings", "texts"),
    [
        ("a.tex", TEX, ["2 Methods", "3 Steps"],
         ["Gauge A costs 40 EUR & more. (by hand) It fills 10⁶ m.", "1. Open", "2. Wait",
            "Month: May; Range: 2.3", "Month: June; Range: 2.4",
          "a % b"]),
        ("a.adoc", ADOC, ["1 Harbour Guide", "2 Mooring", "3 Fees"],
         ["Tie up at quay 4.", "1. Open\n2. Wait", "Ship: Wega; Berth: 4", "== no heading", "40 EUR"]),
        ("a.rst", RST, ["1 Guide", "2 Mooring", "2 Fees"], ["Intro.", "Quay 4.", "40 EUR"]),
        ("a.org", ORG, ["1 Mooring", "2 Lines"], ["#+TITLE: Plan", "Quay 4.", "Ship: Wega; Berth: 4", "* x"]),
        ("a.wiki", WIKI, ["2 Mooring", "3 Lines"], ["1. one\n2. two", "* a"]),
    ],
)  # fmt: skip
def test_headings_of_other_markup_are_headings(
    tmp_path: Path, name: str, text: str, headings: list[str], texts: list[str]
) -> None:
    blocks = _read(tmp_path, name, text).blocks
    assert [f"{block.level} {block.text}" for block in blocks if block.kind is BlockKind.HEADING] == headings
    rest = [block.text.strip() for block in blocks if block.kind is not BlockKind.HEADING]
    assert rest[1 if name == "a.tex" else 0 :] == texts


def test_document_of_tex_has_its_title_and_keeps_what_stands_before_the_text(tmp_path: Path) -> None:
    read = _read(tmp_path, "a.tex", TEX)
    assert read.title == "Tides at Osk"
    assert read.blocks[0].text.startswith(r"\documentclass{article}")


@pytest.mark.parametrize("text", [r"\begin{verbatim}", r"\begin{tabular}{", r"\section{", "----\n", "|===\n|a\n"])
def test_markup_that_is_not_closed_loses_nothing(tmp_path: Path, text: str) -> None:
    for name in ("a.tex", "a.adoc"):
        assert "kept" in "".join(block.text for block in _read(tmp_path, name, f"{text}kept words\n").blocks)
