"""Readable text of any kind: code by its structure, notebooks, mailboxes, calendars, XML, subtitles; and what cannot be read."""

import io
import json
from email.message import EmailMessage
from pathlib import Path

import pytest

from services.ingest.errors import DocumentRejected
from services.ingest.reading.child.prepare import PrepareRequest, prepare
from services.ingest.reading.chunks.tokens import EstimatedTokens
from services.ingest.reading.detection import detect_media_type
from services.ingest.reading.models import BlockKind, ParsedDocument
from services.ingest.reading.parsers.registry import parse


def _read(tmp_path: Path, name: str, data: str | bytes) -> ParsedDocument:
    path = tmp_path / "file"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    with path.open("rb") as file:
        return parse(path, detect_media_type(file, name), name)


def _texts(document: ParsedDocument) -> list[str]:
    return [block.text for block in document.blocks]


@pytest.mark.parametrize(
    "name",
    [
        "main.py",
        "app.ts",
        "conf.ini",
        "q.sql",
        "s.sh",
        "t.toml",
        "Dockerfile",
        "a.json5",
        "a.unheardof",
        "minutes 2024.05.01",
        "x.adoc",
        "paper.tex",
    ],
)
def test_readable_text_is_read_whatever_its_extension(tmp_path: Path, name: str) -> None:
    assert [text.strip() for text in _texts(_read(tmp_path, name, "High water is at four.\n"))] == [
        "High water is at four."
    ]


METHOD = (
    '    def {name}(self) -> int:\n        """Counts the {name}."""\n'
    + "        total = 0\n" * 30
    + "        return total\n"
)
PYTHON = (
    "import os\nimport sys\n\nLIMIT = 4\n\n\n# Opens it.\n@cached\ndef open_gate(\n    name: str,\n) -> None:\n    pass\n\n\n"
    "class Harbour:\n    depth = 4\n\n" + "\n".join(METHOD.format(name=name) for name in ("ships", "ropes", "buoys"))
)  # fmt: skip


def test_functions_stay_whole_below_the_names_that_enclose_them(tmp_path: Path) -> None:
    document = _read(tmp_path, "src/harbour.py", PYTHON)
    assert document.title == "src/harbour.py"
    blocks = [(block.text.split("\n")[0].strip(), block.context) for block in document.blocks]
    assert blocks == [
        ("import os", ()),
        ("# Opens it.", ()),
        ("class Harbour:", ()),
        ("depth = 4", ("class Harbour",)),
        ("def ships(self) -> int:", ("class Harbour",)),
        ("def ropes(self) -> int:", ("class Harbour",)),
        ("def buoys(self) -> int:", ("class Harbour",)),
    ]
    assert all(block.kind is BlockKind.CODE for block in document.blocks)
    assert "".join(PYTHON.split()) == "".join("".join(_texts(document)).split())


def test_chunk_of_code_says_its_file_and_what_encloses_it(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(PYTHON, "utf-8")
    request = PrepareRequest(str(path), "text/x-source", "src/harbour.py", "", 256)
    chunks = prepare(request, lambda _: None, EstimatedTokens()).chunks
    (ropes,) = (chunk for chunk in chunks if "def ropes" in chunk.text)
    assert ropes.embedded_text.startswith("src/harbour.py\nclass Harbour\n\ndef ropes")
    assert ropes.text.endswith("return total")


@pytest.mark.parametrize(
    ("name", "text", "units"),
    [
        ("a.ts", "import x from 'y';\n\nexport const rate = (a: number) => {\n  return a;\n};\n\nfunction f() {\n  return 1;\n}\n",
         ["import x from 'y';", "export const rate = (a: number) => {", "function f() {"]),
        ("a.c", "#include <a.h>\n\nstatic int f(int a)\n{\n  return a;\n}\n\nint g(void) {\n  return 2;\n}\n",
         ["#include <a.h>", "static int f(int a)", "int g(void) {"]),
        ("a.ini", "[pump]\nrate=40\nmax=9\n\n[valve]\nopen=1\n", ["[pump]", "[valve]"]),
        ("a.yaml", "server:\n  port: 8080\nclient:\n  name: x\n", ["server:", "client:"]),
        ("a.sql", "CREATE TABLE berth (\n  id INT\n);\n\nCREATE VIEW free AS\n  SELECT 1;\n",
         ["CREATE TABLE berth (", "CREATE VIEW free AS"]),
    ],
)  # fmt: skip
def test_units_of_code_are_found_in_any_language(tmp_path: Path, name: str, text: str, units: list[str]) -> None:
    document = _read(tmp_path, name, text)
    assert [block.text.split("\n")[0] for block in document.blocks] == units
    assert "".join(text.split()) == "".join("".join(_texts(document)).split())


def test_notebook_has_its_cells_and_what_they_print_without_pictures(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Tide\n", "The range is 2.31 m."]},
        {"cell_type": "code", "source": "print(1)", "outputs": [
            {"output_type": "stream", "text": ["rmse = 0.042\n"]},
            {"output_type": "display_data", "data": {"image/png": "AAECAw" * 500, "text/plain": "<Figure>"}},
            {"output_type": "error", "ename": "ValueError", "evalue": "no tide"},
        ]},
    ]  # fmt: skip
    document = _read(tmp_path, "nb.ipynb", json.dumps({"cells": cells, "nbformat": 4}))
    assert _texts(document) == ["Tide", "The range is 2.31 m.", "print(1)", "rmse = 0.042", "ValueError: no tide"]
    assert document.warnings == ("1 picture was left out",)
    with pytest.raises(DocumentRejected, match="list of cells"):
        _read(tmp_path, "nb.ipynb", "[]")


def test_text_of_several_lines_ends_no_function(tmp_path: Path) -> None:
    step = '    def step_{0}(self):\n        text = """\nraw {0}\n"""\n        return text  # {1}\n\n'
    code = (
        "class Pump:\n    LIMIT = 40\n\n"
        + "".join(step.format(n, "x" * 100) for n in range(12))
        + "def main():\n    Pump()\n"
    )
    blocks = _read(tmp_path, "a.py", code).blocks
    assert [block.label for block in blocks] == [
        "class Pump",
        "",
        *(f"def step_{n}(self)" for n in range(12)),
        "def main()",
    ]
    assert all("return text" in block.text and block.context == ("class Pump",) for block in blocks[2:-1])


SQL = """-- Finds one.
CREATE OR REPLACE FUNCTION free_berth(d NUMERIC) RETURNS INTEGER AS $$
BEGIN
  RETURN (SELECT id FROM berth WHERE depth > d);
END;
$$ LANGUAGE plpgsql;
SELECT id
FROM berth;
DELIMITER //
CREATE PROCEDURE close_gate(IN g INT)
BEGIN
IF g > 2 THEN
  UPDATE gate SET open = 0;
END IF;
INSERT INTO log VALUES (g);
END //
DELIMITER ;
CREATE VIEW deep AS
SELECT * FROM berth
WHERE depth > 9;
DROP TABLE IF EXISTS old;
"""


def test_definitions_of_sql_stay_whole(tmp_path: Path) -> None:
    starts = [(text.split("\n")[0], text.split("\n")[-1]) for text in _texts(_read(tmp_path, "a.sql", SQL))]
    assert starts == [
        ("-- Finds one.", "$$ LANGUAGE plpgsql;"),
        ("SELECT id", "DELIMITER //"),
        ("CREATE PROCEDURE close_gate(IN g INT)", "END //"),
        ("DELIMITER ;", "DELIMITER ;"),
        ("CREATE VIEW deep AS", "WHERE depth > 9;"),
        ("DROP TABLE IF EXISTS old;", "DROP TABLE IF EXISTS old;"),
    ]


def test_notebook_of_the_third_format_has_its_cells(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Old study"]},
        {"cell_type": "code", "input": ["x = 41"], "outputs": [{"output_type": "pyout", "text": ["41"]}]},
    ]
    document = _read(tmp_path, "old.ipynb", json.dumps({"worksheets": [{"cells": cells}], "nbformat": 3}))
    assert (document.title, _texts(document)) == ("Old study", ["Old study", "x = 41", "41"])
    for broken in ({"worksheets": []}, {"worksheets": [1]}, {"nbformat": 3}):
        with pytest.raises(DocumentRejected, match="no list of cells"):
            _read(tmp_path, "old.ipynb", json.dumps(broken))


def test_mailbox_is_its_messages_with_author_and_date(tmp_path: Path) -> None:
    box = (
        "From ines@example.org Tue Jun  4 09:12:00 2024\nFrom: ines@example.org\nSubject: Keys\n"
        "Date: Tue, 4 Jun 2024 09:12:00 +0200\n\nThe spare keys are in locker 12.\n\n"
        "From tomo@example.org Tue Jun  4 10:12:00 2024\nFrom: tomo@example.org\nSubject: Rope\n\n>From tomorrow on it is closed.\n"
    )
    for name in ("box.mbox", "box"):
        document = _read(tmp_path, name, box)
        assert [text.strip() for text in _texts(document)] == [
            "Keys", "From: ines@example.org", "The spare keys are in locker 12.",
            "Rope", "From: tomo@example.org", "From tomorrow on it is closed.",
        ]  # fmt: skip
        assert document.blocks[2].context == ("From: ines@example.org; Date: Tue, 04 Jun 2024 09:12:00 +0200",)
        assert document.blocks[0].metadata == {"author": "ines@example.org", "date": "2024-06-04T07:12:00Z"}


EVENT = (
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART:20240712T080000Z\r\nDTEND;VALUE=DATE:20240714\r\n"
    "SUMMARY:Dock clo\r\n sure\r\nLOCATION:Dock 4\\, north\r\nORGANIZER;CN=Ines Varg:mailto:ines@example.org\r\n"
    "RRULE:FREQ=WEEKLY;COUNT=3\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)
ROW = (
    "Event: Dock closure; Start: 2024-07-12 08:00 UTC; End: 2024-07-14; Repeats: FREQ=WEEKLY, COUNT=3; Place: Dock 4, north; "
    "Organizer: Ines Varg <ines@example.org>"
)


def test_calendar_is_a_row_an_event(tmp_path: Path) -> None:
    assert _texts(_read(tmp_path, "meet.ics", EVENT)) == [ROW]
    with pytest.raises(DocumentRejected, match="no calendar"):
        _read(tmp_path, "meet.ics", "words")


def test_mail_keeps_its_calendar_and_the_headers_of_what_it_forwards(tmp_path: Path) -> None:
    inner = EmailMessage()
    inner["From"], inner["Subject"] = "tomo@example.org", "Berth"
    inner.set_content("Berth C-14 is yours.")
    message = EmailMessage()
    message["From"], message["Subject"] = "ines@example.org", "Fwd: Berth"
    message.set_content("See below.")
    message.add_alternative("<p>See below.</p>", subtype="html")
    message.add_alternative(EVENT, subtype="calendar")
    message.add_attachment(inner)
    texts = [text.strip() for text in _texts(_read(tmp_path, "a.eml", message.as_bytes()))]
    assert texts == [
        "From: ines@example.org", "See below.", ROW, "Forwarded: Berth", "From: tomo@example.org", "Berth C-14 is yours.",
    ]  # fmt: skip


def test_xml_is_rows_of_fields_and_paragraphs(tmp_path: Path) -> None:
    data = (
        '<catalog year="2024"><part no="K-77-B"><name>Valve</name><price unit="EUR">12.5</price></part>'
        "<note>Order <b>early</b> in spring.</note><empty/><size>4</size></catalog>"
    )
    assert _texts(_read(tmp_path, "a.xml", data)) == [
        "catalog; year: 2024; size: 4",
        "part; no: K-77-B; name: Valve; price: 12.5, unit EUR",
        "Order early in spring.",
    ]


def test_subtitles_are_what_is_said(tmp_path: Path) -> None:
    srt = "1\n00:00:01,000 --> 00:00:04,000\n<i>Welcome</i> to the\nharbour.\n\n2\n00:00:04,500 --> 00:00:08,000\nIt is old.\n"
    vtt = "WEBVTT\n\n00:01.000 --> 00:04.000\n<v Orla>Welcome.\n"
    assert _texts(_read(tmp_path, "a.srt", srt)) == ["00:00:01 Welcome to the harbour. It is old."]
    assert _texts(_read(tmp_path, "a.vtt", vtt)) == ["00:01 Orla: Welcome."]


def test_json_with_comments_and_trailing_commas_is_read(tmp_path: Path) -> None:
    data = '{\n  // the port\n  "port": 7443, /* old */\n  "url": "http://a//b",\n  "hosts": ["a", "b",], // end\n}'
    assert _texts(_read(tmp_path, "a.json", data)) == ["port: 7443; url: http://a//b; hosts: a, b"]


@pytest.mark.parametrize(
    ("name", "advice"),
    [("a.mp3", "transcript"), ("a.pages", "export it"), ("a.xlsb", "save it as .xlsx"), ("a.bin", "convert it")],
)
def test_what_cannot_be_read_says_what_to_do(tmp_path: Path, name: str, advice: str) -> None:
    with pytest.raises(DocumentRejected, match=advice) as rejected:
        _read(tmp_path, name, bytes(range(256)) * 4)
    assert rejected.value.reason == "UNSUPPORTED_TYPE"


def test_binary_is_no_text_whatever_its_extension() -> None:
    assert detect_media_type(io.BytesIO(bytes(range(256)) * 4), "main.py") == "application/octet-stream"


@pytest.mark.parametrize("name", ["buoys.gpx", "settings.plist"])
def test_xml_is_known_by_its_beginning(tmp_path: Path, name: str) -> None:
    text = "<?xml version='1.0'?><list><item><name>Buoy 12</name><light>red</light></item></list>"
    assert _texts(_read(tmp_path, name, text)) == ["item; name: Buoy 12; light: red"]


def test_saved_web_page_is_read_as_the_message_that_it_is(tmp_path: Path) -> None:
    page = "From: saved\nMIME-Version: 1.0\nContent-Type: text/html; charset=utf-8\n\n<p>High water is at four.</p>"
    assert _texts(_read(tmp_path, "page.mhtml", page))[-1] == "High water is at four."
