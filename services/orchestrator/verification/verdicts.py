"""What is said of a claim and of an answer as a whole."""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum

from services.orchestrator.log.events import CheckedBy, SentenceVerdict, SupportStatus


class Verdict(StrEnum):
    """What the passages say to a claim."""

    SUPPORTED = "supported"
    SIMILAR_WORDING = "similar_wording"
    """Supported, as far as a judge can tell that is not accurate enough to say so."""
    PARTLY = "partly"
    CONTRADICTED = "contradicted"
    NOT_FOUND = "not_found"
    NO_CLAIM = "no_claim"
    """There is nothing to check: small talk, a question, a heading."""

    @property
    def is_good(self) -> bool:
        """Whether the claim keeps its citations as it is."""
        return self in (Verdict.SUPPORTED, Verdict.SIMILAR_WORDING)


class Verify(StrEnum):
    """What becomes of a claim that is not supported."""

    MARK = "mark"
    """It loses its citation."""
    REMOVE = "remove"
    """Its sentence is left out of the answer."""
    OFF = "off"
    """Nothing is checked."""


QUOTES = CheckedBy("quotes", measured=True)
"""Compared word for word."""
TABLE = CheckedBy("table", measured=True)
"""A row put together from its cells, each compared word for word."""
EFFECTS = CheckedBy("effects", measured=True)
"""Compared with what the run has done."""
WORDS = CheckedBy("words")
"""The share of words in common: the last resort."""


_MOST_FALSE_PASSED = _MOST_TRUE_FAILED = 0.15
"""From these shares down the error of a judge is small enough."""


def measured_judges(text: str) -> Mapping[str, CheckedBy]:
    """Judges whose error was measured, of a JSON object by name: `{"model/x": {"false_passed": 0.03, "true_failed": 0.06,
    "claims": 210}}`. Raises ValueError."""
    try:
        return {name: _measured(name, **figures) for name, figures in json.loads(text).items()}
    except (TypeError, AttributeError) as error:
        raise ValueError("it is no JSON object of judges, each with false_passed, true_failed and claims") from error


def _measured(name: str, *, false_passed: float, true_failed: float, claims: int) -> CheckedBy:
    is_small = false_passed <= _MOST_FALSE_PASSED and true_failed <= _MOST_TRUE_FAILED
    return CheckedBy(name, is_small and claims > 0, false_passed, true_failed, claims)


def supporting(checked_by: CheckedBy) -> Verdict:
    """What a judge says of a claim that it finds carried. This is the one place where a judge earns "supported"."""
    return Verdict.SUPPORTED if checked_by.measured else Verdict.SIMILAR_WORDING


def status_of(verdicts: Sequence[SentenceVerdict]) -> SupportStatus | None:
    """Of the whole, by the claims that stand in it; None where nothing is claimed of documents and nothing is false."""
    claims = [each for each in verdicts if each.verdict != Verdict.NO_CLAIM and not each.removed]
    untrue = [each for each in claims if each.is_action and each.verdict != Verdict.SUPPORTED]
    said = [Verdict(each.verdict) for each in claims if not each.is_action]
    good = sum(each.is_good for each in said)
    if not good and Verdict.PARTLY not in said:
        return SupportStatus.INSUFFICIENT if said or untrue or not claims else None
    if good < len(said) or untrue:
        return SupportStatus.PARTIAL
    return SupportStatus.SIMILAR_WORDING if Verdict.SIMILAR_WORDING in said else SupportStatus.SUPPORTED


def least_certain(verdicts: Sequence[SentenceVerdict]) -> CheckedBy | None:
    """The judge of the claims; of several one that was not measured, before one that was, before what is compared exactly."""
    judges = [each.checked_by for each in verdicts if each.checked_by is not None and each.verdict != Verdict.NO_CLAIM]
    return min(judges, key=_certainty, default=None)


def _certainty(judge: CheckedBy) -> tuple[bool, bool, int, bool]:
    is_exact = judge.measured and not judge.claims
    return is_exact, judge.measured, judge.claims, judge == QUOTES
