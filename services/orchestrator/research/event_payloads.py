"""The events that describe a research run to its client."""

from collections.abc import Sequence

from services.orchestrator.log.events import Degradation, Evidence, Plan, Retrieval, SubQuery, Thinking
from services.orchestrator.research.models import (
    Effort,
    PlannedSearch,
    Purpose,
    QuestionPart,
    ResearchPlan,
    RoundFound,
    Unclear,
)
from services.orchestrator.research.question.effort import ChosenEffort
from services.orchestrator.research.search.fusing import EvidenceSet
from services.orchestrator.research.search.investigations import unnumbered


def degradations(found: Sequence[RoundFound]) -> tuple[Degradation, ...]:
    """What searches had to do without, each once."""
    return tuple(dict.fromkeys(each for one in found for each in one.degraded))


def describe_effort(chosen: ChosenEffort) -> Thinking:
    """The chosen effort and its reason."""
    return Thinking("plan", f"Effort {chosen.effort.value}: {chosen.reason}.")


def describe_unclear(unclear: Unclear) -> Thinking:
    """Whether the question can be answered as it stands."""
    if unclear.question:
        return Thinking("plan", "The question does not say what it is about: asking first.")
    return Thinking("plan", "The question can be answered as it stands.")


def describe_plan(effort: Effort, parts: Sequence[QuestionPart], plan: ResearchPlan) -> Plan:
    """The plan of the first round."""
    return Plan(
        plan.route,
        tuple(each.text for each in plan.searches),
        tuple(plan.reasons),
        describe_searches(plan.searches, plan.route),
        tuple(plan.must_phrases),
        tuple(plan.should_phrases),
        plan.filter if plan.filter.is_set else None,
        plan.planned_by,
        1,
        effort.value,
        tuple(part.text for part in parts),
    )


def describe_refinement(
    number: int, effort: Effort, plan: ResearchPlan, investigation: str, searches: Sequence[PlannedSearch]
) -> Plan:
    """What a further round searches for; of an investigation, which it names, or of the run."""
    return Plan(
        plan.route,
        tuple(each.text for each in searches),
        sub_queries=describe_searches(searches, plan.route),
        planned_by="model" if any(each.purpose is Purpose.HYPOTHESIS for each in searches) else "rules",
        round=number,
        effort=effort.value,
        investigation=investigation,
    )


def describe_searches(searches: Sequence[PlannedSearch], route: str) -> tuple[SubQuery, ...]:
    """The searches with their purposes and what each alone keeps to."""
    return tuple(
        SubQuery(each.text, each.purpose.value, each.strategy or route, each.filter if each.filter.is_set else None)
        for each in searches
    )


def describe_joined(evidence: EvidenceSet, number: int) -> Retrieval:
    """The evidence of all investigations together."""
    return Retrieval(evidence.evidence, round=number, dropped=evidence.dropped)


def describe_round(
    found: RoundFound, evidence: EvidenceSet, number: int, investigation: str = "", known: Sequence[Evidence] = ()
) -> Retrieval:
    """The evidence after a round; of an investigation, which it names, with the numbers of what was `known` before it."""
    return Retrieval(
        unnumbered(evidence.evidence, known) if investigation else evidence.evidence,
        tuple(found.degraded),
        found.timings_ms,
        found.strategy,
        number,
        evidence.dropped,
        len(found.lists),
        investigation,
    )
