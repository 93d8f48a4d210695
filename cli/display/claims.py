"""What was checked of an answer, claim by claim, and by whom: only what the judge has earned is said."""

from __future__ import annotations

from cli.client.gateway import Json
from cli.display.terminal import escape

_MARKS = {
    "supported": "[green]✓[/green]",
    "similar_wording": "[dim]~[/dim]",
    "partly": "[yellow]◐[/yellow]",
    "contradicted": "[red]✗[/red]",
    "not_found": "[red]○[/red]",
}
_WORDS = {
    "partly": "carried in part",
    "contradicted": "its sources say otherwise",
    "not_found": "not found in the documents",
}
_ACTIONS = {"contradicted": "did not happen", "not_found": "nobody knows whether this happened"}
_QUOTED = {"table": "From a table.", "": "Quoted word for word."}
_SIMILAR = "The wording of every sentence is similar to its sources. Its meaning is not checked."


def support_lines(answer: Json) -> list[str]:
    """Whether its sources carry an answer, how often the judge of that is wrong, and what was left out."""
    verification = answer.get("verification") or {}
    if verification.get("verify") == "off":
        return ["Nothing was checked."]
    removed = verification.get("removed") or 0
    left = (
        f"{removed} sentence{'s were' if removed > 1 else ' was'} left out: nothing carries what was said."
        if removed
        else ""
    )
    return [line for line in (_said(answer, verification), _judge(verification), left) if line]


def _said(answer: Json, verification: Json) -> str:
    by = verification.get("checked_by") or {}
    match answer.get("support_status"):
        case "supported" if answer.get("method") == "extractive":
            return _QUOTED.get(by.get("name", ""), _QUOTED[""])
        case "supported" if by.get("measured"):
            return "Every sentence is carried by its sources."
        case "supported":
            return "A model found every sentence carried by its sources."
        case "similar_wording":
            return _SIMILAR
        case "partial":
            return "Some sentences were not found in their sources."
        case _:
            return ""


def _judge(verification: Json) -> str:
    """Of a judge that is not exact."""
    by = verification.get("checked_by") or {}
    if not by or by["name"] in {"quotes", "table", "effects"}:
        return ""
    if not by.get("claims"):
        return f"Judged by {by['name']}; how often it is wrong was not measured."
    shares = f"{by['false_passed']:.0%} of false claims pass and {by['true_failed']:.0%} of true ones do not"
    return f"Judged by {by['name']}: {shares}, on {by['claims']} labelled claims."


def claim_lines(answer: Json) -> list[str]:
    """A line for each claim of a written answer where one of them is not carried; with rich's markup. A quoted answer has none."""
    sentences = (answer.get("verification") or {}).get("sentences") or []
    claims = [each for each in sentences if each["verdict"] != "no_claim"]
    if answer.get("method") == "extractive" or all(
        each["verdict"] in {"supported", "similar_wording"} for each in claims
    ):
        return []
    return ["Claims:", *(f"  {claim_line(each)}" for each in claims)]


def claim_line(claim: Json) -> str:
    """`✗ The tower was built in 1890. (its sources say otherwise)`, with rich's markup."""
    words = (_ACTIONS if claim.get("is_action") else _WORDS).get(claim["verdict"], "")
    notes = [words, "left out" if claim.get("removed") else ""]
    reasons = "; ".join(note for note in notes if note)
    return f"{_MARKS.get(claim['verdict'], '·')} {escape(claim['sentence'])}{f' [dim]({reasons})[/dim]' if reasons else ''}"
