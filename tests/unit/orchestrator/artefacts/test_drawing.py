"""Drawings hold what stands in the passages, with the place of each part; what does not stand there is left out and said."""

from typing import Any

import pytest

from services.orchestrator.artefacts.kinds import problem_with
from services.orchestrator.drawing import mermaid
from services.orchestrator.drawing.building import build
from services.orchestrator.drawing.finding import find
from services.orchestrator.drawing.forms import Form, read_form
from services.orchestrator.drawing.parts import Drawing, numbers_of, place
from services.orchestrator.drawing.schemas import ARTEFACTS
from services.orchestrator.drawing.showing import as_outline, drawing_artefact
from services.orchestrator.log.events import Evidence
from tests.unit.orchestrator.artefacts.passages import BRIDGE, BUILDINGS, ROWS, TOWER, passage

TABLE = (passage(1, ROWS),)
GUIDE = (
    passage(1, "1. Open the valve.\n2. Start the pump.\n3. Read the gauge.", "Operation", "Start", document="guide"),
    passage(2, "Close the valve first.", "Operation", "Stop", document="guide"),
)


def drawn(form: Form, question: str, evidence: tuple[Evidence, ...]) -> Drawing:
    filled = find(form, question, evidence)
    assert filled is not None
    drawing = build(form, filled, evidence)
    assert drawing is not None
    assert not problem_with(drawing_artefact(drawing, evidence), ARTEFACTS)
    return drawing


def quotes(drawing: Drawing, evidence: tuple[Evidence, ...]) -> list[str]:
    return [evidence[part.source - 1].text[part.start : part.end] for part in drawing.parts]


def test_bars_are_the_numbers_of_a_column_each_with_its_row() -> None:
    drawing = drawn(Form.BAR, "Bar chart of the revenue 2023", TABLE)
    assert drawing.body["labels"] == ["North", "South"]
    assert drawing.body["series"][-1] == {"name": "Revenue 2023", "values": [530.0, 190.0]}
    assert quotes(drawing, TABLE)[-1] == "Region: South; Revenue 2022: 208; Revenue 2023: 190"


def test_line_runs_over_the_years_of_the_columns() -> None:
    drawing = drawn(Form.LINE, "Line chart of revenue", TABLE)
    assert drawing.body["labels"] == ["Revenue 2022", "Revenue 2023"]
    assert [each["name"] for each in drawing.body["series"]] == ["North", "South"]


def test_line_runs_over_the_years_of_sentences() -> None:
    said = (passage(1, "In 2019 sales were 12 million. In 2021 sales were 15 million. In 2020 sales were 9 million."),)
    drawing = drawn(Form.LINE, "How did sales develop?", said)
    assert (drawing.body["labels"], drawing.body["series"][0]["values"]) == (
        ["2019", "2020", "2021"],
        [12.0, 9.0, 15.0],
    )


def test_table_has_a_citation_for_each_cell() -> None:
    drawing = drawn(Form.TABLE, "Table of the regions", TABLE)
    assert drawing.body == {
        "columns": ["Region", "Revenue 2022", "Revenue 2023"],
        "rows": [["North", "512", "530"], ["South", "208", "190"]],
    }
    assert {part.path for part in drawing.parts} == {f"/rows/{row}/{at}" for row in range(2) for at in range(3)}


def test_time_line_is_in_the_order_of_the_times() -> None:
    drawing = drawn(Form.TIMELINE, "Time line", BUILDINGS)
    assert [each["when"] for each in drawing.body["events"]] == ["1889", "1914", "1932", "1936"]
    assert drawing.body["events"][0]["what"] in TOWER


def test_mind_map_is_the_tree_of_headings() -> None:
    drawing = drawn(Form.MIND_MAP, "Mind map", GUIDE)
    assert drawing.body["mermaid"].splitlines() == [
        "mindmap",
        '  n1["guide.txt"]',
        '    n2["Operation"]',
        '      n3["Start"]',
        '      n4["Stop"]',
    ]


def test_numbered_steps_are_a_flow() -> None:
    drawing = drawn(Form.FLOW, "Flow chart", GUIDE)
    assert [each["label"] for each in drawing.body["nodes"]] == [
        "Open the valve.",
        "Start the pump.",
        "Read the gauge.",
    ]
    assert "n1 --> n2" in drawing.body["mermaid"]


def test_documents_stand_side_by_side() -> None:
    drawing = drawn(Form.SIDE_BY_SIDE, "Compare the height of the tower and the span of the bridge", BUILDINGS[:2])
    assert drawing.body["documents"] == ["d1.txt", "d2.txt"]
    assert drawing.body["rows"][0]["texts"][0] in TOWER
    assert drawing.body["rows"][0]["texts"][1] in BRIDGE


def chart(*points: tuple[str, float, int]) -> dict[str, Any]:
    return {
        "title": "Heights",
        "unit": "metres",
        "points": [{"series": "", "label": label, "value": value, "source": source} for label, value, source in points],
    }


def test_number_that_stands_in_no_passage_is_dropped_and_said() -> None:
    filled = chart(("tower", 324, 1), ("dam", 221, 3), ("bridge", 999, 2), ("pyramid", 324, 1))
    drawing = build(Form.BAR, filled, BUILDINGS)
    assert drawing is not None
    assert drawing.body["labels"] == ["tower", "dam"]
    assert [each.partition(":")[0] for each in drawing.left_out] == ["bridge", "pyramid"]
    assert "Left out:" in drawing_artefact(drawing, BUILDINGS).outline


def test_drawing_of_which_nothing_is_left_is_none() -> None:
    assert build(Form.BAR, chart(("bridge", 999, 2)), BUILDINGS) is None
    events = {"title": "", "events": [{"when": "1999", "what": "The tower was built", "source": 1}]}
    assert build(Form.TIMELINE, events, BUILDINGS) is None


def test_node_and_line_of_a_diagram_must_stand_in_their_passages() -> None:
    filled = {
        "title": "Who built what",
        "nodes": [
            {"id": "a", "label": "Gustave Eiffel", "members": [], "source": 1},
            {"id": "b", "label": "tower", "members": [], "source": 1},
            {"id": "c", "label": "Elvis", "members": [], "source": 1},
            {"id": "d", "label": "harbour bridge", "members": [], "source": 2},
        ],
        "edges": [
            {"from": "a", "to": "b", "label": "built", "source": 1},
            {"from": "a", "to": "c", "label": "knew", "source": 1},
            {"from": "a", "to": "d", "label": "built", "source": 2},
        ],
    }
    drawing = build(Form.FLOW, filled, BUILDINGS)
    assert drawing is not None
    assert [each["label"] for each in drawing.body["nodes"]] == ["Gustave Eiffel", "tower", "harbour bridge"]
    assert drawing.body["edges"] == [{"from": "a", "to": "b", "label": "built"}]
    assert len(drawing.left_out) == 2


def test_what_cannot_be_drawn_becomes_its_outline() -> None:
    drawing = as_outline(GUIDE, "No sequence is told.")
    assert drawing is not None
    assert [(line["level"], line["text"]) for line in drawing.body["lines"]][:3] == [
        (0, "guide.txt"),
        (1, "Operation"),
        (2, "Start"),
    ]
    assert not problem_with(drawing_artefact(drawing, GUIDE), ARTEFACTS)


@pytest.mark.parametrize("form", [Form.FLOW, Form.SEQUENCE, Form.CLASS, Form.STATE, Form.MIND_MAP])
def test_no_text_becomes_syntax(form: Form) -> None:
    evil = 'x"]; click n1 "javascript:alert(1)" %%{init: {}}%% <b>\n    end --> A{b} `c` : d | e'
    nodes = [{"id": "a", "label": evil, "members": [evil]}, {"id": "b", "label": "end", "members": []}]
    source = mermaid.diagram(form, nodes, [{"from": "a", "to": "b", "label": evil}])
    for mark in ('"];', "javascript:", "{init", "<b>", "`", "end -->", "%%", '"end"'):
        assert mark not in source
    assert len(source.splitlines()) <= 6


def test_time_line_is_escaped() -> None:
    source = mermaid.timeline("a: b", [{"when": "1:2", "what": "x : y\nsection z"}])
    assert source == "timeline\n    title a#58; b\n    1#58;2 : x #58; y section z\n"


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.2 million", 1_200_000), ("12,5 %", 12.5), ("1,234 units", 1234), ("-3 degrees", -3), ("€4bn", 4e9)],
)
def test_number_is_read_as_it_is_meant(text: str, value: float) -> None:
    assert value in numbers_of(text)


def test_name_that_is_a_common_word_is_cited_where_it_is_written() -> None:
    text = "Symbol: ALLE; Security: Allegion\nSymbol: ALL; Security: Allstate"
    start, end = place(text, "ALL")
    assert text[start:end] == "Symbol: ALL; Security: Allstate"


def test_digits_behind_a_zero_are_no_number() -> None:
    """An ISBN is drawn as no height."""
    assert numbers_of("ISBN 978-0300138139, 0.5 of 007") == {978.0, 0.5}


@pytest.mark.parametrize(
    ("message", "form"),
    [
        ("Draw a flowchart of the process", Form.FLOW),
        ("mind map of the handbook", Form.MIND_MAP),
        ("Show revenue as a line chart", Form.LINE),
        ("radar chart of the teams", Form.RADAR),
        ("a chart of wins", Form.BAR),
        ("Compare the two contracts side by side", Form.SIDE_BY_SIDE),
        ("Compare the two plans", Form.TABLE),
        ("timeline of the project", Form.TIMELINE),
        ("class diagram of the API", Form.CLASS),
        ("Zustandsdiagramm der Bestellung", Form.STATE),
        ("visualise it", None),
    ],
)
def test_message_names_the_form(message: str, form: Form | None) -> None:
    assert read_form(message) is form
