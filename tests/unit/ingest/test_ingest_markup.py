"""What a page in HTML or Markdown says beside its words: numbers of lists, breaks, terms, what is crossed out, front matter."""

import io
from pathlib import Path

import pytest

from services.ingest.reading.detection import detect_media_type
from services.ingest.reading.models import ParsedDocument
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
        ("a.html", "<table><caption>Berths</caption><tr><td>Name<td>No<tr><td>C<td>14</table>", ["Berths", "Name: No", "C: 14"]),
        ("a.html", "<p>Costs <s>300</s> 450, <del>not</del> due", ["Costs 450, due"]),
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
