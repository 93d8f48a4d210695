"""How well a judge tells claims that their passage carries from others."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from evals.claims.sets import LabelledClaim

_BINS = 10


@dataclass(frozen=True)
class CitationShares:
    """How well an answer cites (Gao et al., arXiv:2305.14627), 0 to 1 each, as its verification says."""

    recall: float
    """Of claims: those that are carried by what they cite."""
    precision: float
    """Of citations: those that help to carry a claim."""
    coverage: float
    """Of claims: those that are carried by any passage of the answer."""


@dataclass(frozen=True)
class Judged:
    """A claim with what a judge says of it."""

    claim: LabelledClaim
    probability: float
    is_supported: bool
    citations: CitationShares | None = None
    """Of the answer that made the claim, where one did."""
    rules: tuple[str, ...] = ()
    """Names of the exact rules that speak against it: each of them alone keeps it from passing."""
    passes_without_rules: bool = False


@dataclass(frozen=True)
class Figures:
    """Of some claims; None where there are none to count."""

    claims: int
    false_that_pass: float | None
    true_that_fail: float | None
    balanced_accuracy: float | None
    calibration_error: float


def figures(judged: Sequence[Judged]) -> Figures:
    """Of these claims."""
    passed = _share([each.is_supported for each in judged if not each.claim.is_true])
    failed = _share([not each.is_supported for each in judged if each.claim.is_true])
    balanced = None if passed is None or failed is None else 1 - (passed + failed) / 2
    return Figures(len(judged), passed, failed, balanced, calibration_error(judged))


def without_rules(judged: Sequence[Judged], names: Collection[str]) -> list[Judged]:
    """The claims as they would be judged without these rules."""
    return [replace(each, is_supported=each.passes_without_rules and not {*each.rules} - {*names}) for each in judged]


def calibration_error(judged: Sequence[Judged]) -> float:
    """Expected calibration error over ten bins: the mean distance between what is said and what is true."""
    bins: dict[int, list[Judged]] = {}
    for each in judged:
        bins.setdefault(min(_BINS - 1, int(each.probability * _BINS)), []).append(each)
    distances = (abs(sum(each.probability - each.claim.is_true for each in own)) for own in bins.values())
    return sum(distances) / len(judged) if judged else 0.0


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None
