"""A drawing as an artefact and as the text of an answer."""

from collections.abc import Sequence
from typing import Any

from services.orchestrator.answering.draft import EXTRACTIVE
from services.orchestrator.artefacts.citing import Citing
from services.orchestrator.drawing.finding import outline
from services.orchestrator.drawing.forms import Form
from services.orchestrator.drawing.parts import Drawing, Part, place
from services.orchestrator.drawing.schemas import OUTLINE
from services.orchestrator.log.events import Answer, Artefact, Evidence, SupportStatus

DRAWING = "drawing"
"""Id of the artefact: a run makes one."""
_MOST_LINES = 12
"""Of the text. The artefact has them all."""
_MANY_PARTS, _AROUND_CHARS = 20, 200
"""With more parts, so much of a passage is kept around what is cited."""
_LONGEST_TITLE = 80


def drawing_artefact(drawing: Drawing, evidence: Sequence[Evidence], title: str = "") -> Artefact:
    """The drawing: each part cites the words that prove it. `title` is that of a drawing that has none of its own."""
    by_number = {each.number: each for each in evidence}
    citing = Citing(around_chars=0 if len(drawing.parts) <= _MANY_PARTS else _AROUND_CHARS)
    for part in drawing.parts:
        citing.cite(part.path, by_number[part.source], part.start, part.end)
    lines = [f"- {part.text}" for part in drawing.parts]
    if drawing.left_out:
        lines += ["Left out:", *(f"- {each}" for each in drawing.left_out)]
    asked = title if len(title) <= _LONGEST_TITLE else ""
    title = drawing.title or asked or drawing.form.value.replace("_", " ").capitalize()
    return Artefact(DRAWING, drawing.kind, title, drawing.body, citing.items, citing.citations, "\n".join(lines))


def drawing_text(drawing: Drawing) -> str:
    """The first parts, a line each, with the numbers of their passages."""
    shown = [f"- {part.text} [{part.source}]" for part in drawing.parts[:_MOST_LINES]]
    return "\n".join(shown)


def drawing_answer(drawing: Drawing, artefact: Artefact) -> Answer:
    """The first parts as an answer of a drawing that rules have made: each cites what its artefact cites for it. Nothing is left to
    judge: a part is drawn where its words and its number stand in the passage."""
    numbers = {item.path: item.citations[0] for item in artefact.items}
    shown = drawing.parts[:_MOST_LINES]
    text = "\n".join(f"- {part.text} [{numbers[part.path]}]" for part in shown)
    cited = {numbers[part.path] for part in shown}
    citations = [each for each in artefact.citations if each.number in cited]
    return Answer(text, citations, SupportStatus.SUPPORTED, EXTRACTIVE)


def as_outline(evidence: Sequence[Evidence], why: str) -> Drawing | None:
    """What the passages say as an outline, in place of what cannot be drawn; None where there are no passages."""
    found = outline(evidence)
    lines: list[dict[str, Any]] = [{"level": level, "text": text} for level, text, _ in found]
    parts = [
        Part(f"/lines/{at}", text, passage.number, *place(passage.text, text))
        for at, (_, text, passage) in enumerate(found)
    ]
    body = {"lines": lines, "left_out": [why]}
    return Drawing(OUTLINE, Form.OUTLINE, "", body, parts, [why]) if lines else None
