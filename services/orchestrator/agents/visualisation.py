"""The agent that draws charts, diagrams, tables and timelines. What a model fills in is checked against the passages; what cannot
be drawn is shown as an outline."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from kit.errors import GroundworkError
from kit.reading.rows import is_row
from services.orchestrator.agent import Agent, Searching
from services.orchestrator.answering.draft import EXTRACTIVE, MODEL
from services.orchestrator.drawing.building import build
from services.orchestrator.drawing.finding import find
from services.orchestrator.drawing.forms import CHARTS, Form, has_topic, read_form
from services.orchestrator.drawing.parts import Drawing
from services.orchestrator.drawing.schemas import ARTEFACTS, WHICH_FORM, filled_schema
from services.orchestrator.drawing.showing import as_outline, drawing_answer, drawing_artefact, drawing_text
from services.orchestrator.log.events import Answer, Evidence, Thinking
from services.orchestrator.log.screen import Screen
from services.orchestrator.naming import most_found
from services.orchestrator.work import Work

_TOP_K = 24
_TOKENS = 1500
_PASSAGES = 12
"""Passages that a model is shown."""
_WHOLE = 400
"""Passages of the longest document that rules read whole."""
_WHICH = "Which form shows best what the question asks for? Answer with the form alone."
_PROMPT = """You draw what the sources say as: {form}. Fill in the data; a program draws them.
- Copy numbers, dates and names exactly as the sources have them. `source` is the number of the source that has them.
- Leave out what no source says. Labels are short and use the words of the sources."""


@dataclass(frozen=True)
class _Chosen:
    """The form of the drawing."""

    form: Form


@dataclass(frozen=True)
class _Drawn:
    """What one step has drawn."""

    drawing: Drawing | None
    evidence: Sequence[Evidence] = ()
    """The passages that it cites, where they are others than those that were found."""


async def work(work: Work) -> Answer | None:
    """A drawing of what the passages say, in the form that the message names."""
    found = await work.passages(has_topic=has_topic(work.message))
    if not found.evidence:
        return None
    form = read_form(work.message) or await _form(work, found.evidence)
    evidence = found.evidence
    method, drawing = MODEL, await _by_model(work, form, evidence) if work.has_model else None
    if drawing is None:
        drawn = await _by_rules(work, form, evidence)
        method, drawing, evidence = EXTRACTIVE, drawn.drawing, drawn.evidence or evidence
    if drawing is None:
        why = f"The passages hold nothing that can be drawn as {form.value.replace('_', ' ')}: this is their outline."
        await work.tell(why)
        drawing = as_outline(evidence, why)
    if drawing is None:
        return None
    for each in drawing.left_out:
        await work.tell(f"Left out: {each}")
    artefact = drawing_artefact(drawing, evidence, work.message)
    await work.publish(artefact)
    if method == EXTRACTIVE:
        answer = drawing_answer(drawing, artefact)
        await Screen(work.run.journal).settle(answer.text)
        return answer
    cited = {part.source for part in drawing.parts}
    return await work.answer(drawing_text(drawing), [each for each in evidence if each.number in cited], method=method)


async def _form(work: Work, evidence: Sequence[Evidence]) -> Form:
    """The form where the message names none: the model's choice, else what the passages allow."""
    if work.has_model:
        try:
            chosen = await work.run.once("form", partial(_chosen, work, evidence), _Chosen, show=_tell_form)
        except GroundworkError as error:
            await work.degrade("llm", error, "Choosing the form without the model.")
        else:
            return chosen.form
    allowed = (form for form in (Form.TABLE, Form.TIMELINE) if find(form, work.message, evidence))
    return next(allowed, Form.MIND_MAP)


def _tell_form(chosen: _Chosen) -> Thinking:
    return Thinking("work", f"Drawing as {chosen.form.value.replace('_', ' ')}.")


async def _chosen(work: Work, evidence: Sequence[Evidence]) -> _Chosen:
    filled = await work.fill_in(WHICH_FORM, evidence[:4], prompt=_WHICH, max_tokens=20)
    return _Chosen(Form(filled["form"]))


async def _by_model(work: Work, form: Form, evidence: Sequence[Evidence]) -> Drawing | None:
    """The drawing of what the model fills in; None where it fails, or nothing of it stands in the passages."""
    try:
        drawn = await work.run.once(
            "model", partial(_filled, work, form, evidence[:_PASSAGES]), _Drawn, show=_tell_drawn
        )
    except GroundworkError as error:
        await work.degrade("llm", error, "Drawing without the model.")
        return None
    return drawn.drawing


def _tell_drawn(drawn: _Drawn) -> Thinking:
    if drawn.drawing is None:
        return Thinking("work", "Nothing of what the model filled in stands in the passages.")
    return Thinking("work", f"{len(drawn.drawing.parts)} parts are checked and cited.")


async def _filled(work: Work, form: Form, evidence: Sequence[Evidence]) -> _Drawn:
    prompt = _PROMPT.format(form=form.value.replace("_", " "))
    filled = await work.fill_in(filled_schema(form), evidence, prompt=prompt, max_tokens=_TOKENS)
    return _Drawn(build(form, filled, evidence))


async def _by_rules(work: Work, form: Form, evidence: Sequence[Evidence]) -> _Drawn:
    async def draw() -> _Drawn:
        passages = await _whole(work, form, evidence)
        drawing = await asyncio.to_thread(_found, form, work.message, passages)
        if drawing is None and passages is not evidence:
            passages, drawing = evidence, await asyncio.to_thread(_found, form, work.message, evidence)
        cited = {part.source for part in drawing.parts} if drawing else ()
        return _Drawn(drawing, [each for each in passages if each.number in cited])

    return await work.run.once("rules", draw, _Drawn, show=_tell_rules, is_last_resort=True)


def _found(form: Form, message: str, passages: Sequence[Evidence]) -> Drawing | None:
    filled = find(form, message, passages)
    return build(form, filled, passages) if filled else None


async def _whole(work: Work, form: Form, evidence: Sequence[Evidence]) -> Sequence[Evidence]:
    """All passages of the document that the drawing is of, so that it has all rows and headings: the only one that was found, or
    for a table, a chart and a mind map the one that most is found in. Where there is none, or it is long, what was found."""
    of_rows = form in (*CHARTS, Form.TABLE)
    rows = [each for each in evidence if any(map(is_row, each.text.splitlines()))] if of_rows else []
    is_one = len({each.document_id for each in evidence}) == 1
    document = most_found(rows or evidence, work.message, 0.0) if is_one or rows or form is Form.MIND_MAP else ""
    passages = await work.read(document) if document else ()
    return passages if 0 < len(passages) <= _WHOLE else evidence


def _tell_rules(drawn: _Drawn) -> Thinking:
    return Thinking("work", "Drawn by rules." if drawn.drawing else "Rules find nothing to draw.")


AGENT = Agent(
    "Draws a diagram, chart, graph, table, timeline or mind map of what documents say, or shows documents side by side.",
    searching=Searching(top_k=_TOP_K),
    called_for_by=(
        r"\b((flow|bar|line|radar|pie|gantt|sequence|class|state|column) ?-?(chart|diagram|graph)s?)\b",
        r"\b(charts?|diagrams?|flowcharts?)\b",
        r"\b(mind ?maps?|time ?lines?|mermaid|visuali[sz]\w*|infographic|side by side|comparison table)\b",
        r"\b(draw|plot|graph|sketch)\b(?! (on|from|conclusions?|up|attention|near))",
        r"\b(as|in|make|into) (a|an) (\w+ )?(table|graph)\b|\btables? (of (?!contents)|comparing|listing|showing|with)\b",
        r"\b(диаграмм\w+|нарисуй\w*|график\w*|таблиц[уы]|хронологи\w+|схем[уы])\b|\b(תרשים|גרף|צייר[וי]?|ציר זמן|טבלה|טבלת)\b",
        r"\b(diagramm\w*|zeichne\w*|zeitstrahl|schaubild|tabelle|graphique|diagramme|frise|gráfic\w+|diagrama|tabla)\b",
    ),
    work=work,
    artefacts=ARTEFACTS,
)
