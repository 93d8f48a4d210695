"""What becomes of what the guard finds: a question is let pass, flagged in its run, or refused; a passage is flagged."""

import asyncio
from collections.abc import Sequence
from enum import StrEnum

from services.orchestrator.errors import QuestionBlocked
from services.orchestrator.guard.finding import Finding, Kind, find
from services.orchestrator.guard.reporting import report_safety
from services.orchestrator.log.events import Evidence, Safety

_SHOWN_CHARS = 200
_WHAT = {
    Kind.INJECTION: "gives orders to the model",
    Kind.EXFILTRATION: "asks for secrets, or sends data away",
    Kind.ABUSE: "asks for harm",
}


class Guard(StrEnum):
    """What becomes of a question that is not safe, from the mildest on."""

    PASS = "pass"  # noqa: S105 - no password
    FLAG = "flag"
    BLOCK = "block"


def strictest(*guards: str) -> Guard:
    """The strictest of them; empty ones say nothing."""
    order = list(Guard)
    return max((Guard(each) for each in guards if each), key=order.index, default=Guard.PASS)


def refuse_unsafe(question: str) -> None:
    """Raises QuestionBlocked, which says what was seen."""
    if found := find(question):
        seen = "; ".join(f"{_words(question, each)!r} {_WHAT[each.kind]} ({each.rule})" for each in found[:3])
        raise QuestionBlocked(
            f"the question was refused: {seen}. Ask it in other words; if you think it is harmless, tell the operator, who sets "
            "GROUNDWORK_GUARD",
            field="question",
            kind=found[0].kind.value,
            rule=found[0].rule,
        )


async def flag_question(question: str) -> None:
    """Has the run say what stands in its question."""
    for each in find(question):
        await report_safety(_flag("question", question, each))


async def flag_passages(evidence: Sequence[Evidence]) -> None:
    """Has the run say which of the passages give orders."""
    found = await asyncio.to_thread(lambda: [find(source.text) for source in evidence])
    for source, orders in zip(evidence, found, strict=True):
        for each in orders:
            if each.kind is not Kind.ABUSE:
                await report_safety(_flag("passage", source.text, each, source.number))


async def flag_results(results: Sequence[str]) -> None:
    """Has the run say what stands in results of tools."""
    for text in results:
        for each in find(text):
            if each.kind is not Kind.ABUSE:
                await report_safety(_flag("tool_result", text, each))


def _flag(place: str, text: str, found: Finding, passage: int = 0) -> Safety:
    return Safety(place, found.kind.value, found.rule, "flagged", passage, found.start, found.end, _words(text, found))


def _words(text: str, found: Finding) -> str:
    return " ".join(text[found.start : found.end].split())[:_SHOWN_CHARS]
