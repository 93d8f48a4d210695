"""The rules, each with a name and a switch. A rule only lowers what the judge says, never lifts it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from services.reranker.judging.features import Alignment
from services.reranker.judging.rules import additions, exact, meaning, roles
from services.reranker.judging.rules.pair import Pair


@dataclass(frozen=True)
class Rule:
    """What makes a claim false."""

    name: str
    applies: Callable[[Pair], bool]
    is_contradiction: bool
    """Whether the passage then says something else; otherwise it says nothing of it."""
    is_addition: bool = False
    """Whether the claim then adds something to what the passage says."""
    is_across_only: bool = False
    """Whether it speaks only where claim and passage are in different languages: in one language the trees see more."""
    is_on: bool = True
    """A rule that is off has proved wrong more often than it helps: the trees compare the same."""


RULES: Sequence[Rule] = (
    Rule("number", exact.number_missing, is_contradiction=True, is_on=False),
    Rule("unit", exact.unit_differs, is_contradiction=True),
    Rule("date", exact.date_differs, is_contradiction=True),
    Rule("denial", meaning.denial_differs, is_contradiction=True),
    Rule("scope", meaning.scope_widened, is_contradiction=True),
    Rule("plan", meaning.plan_as_fact, is_contradiction=True, is_across_only=True),
    Rule("comparison", meaning.comparison_turned, is_contradiction=True),
    Rule("roles", roles.names_swapped, is_contradiction=True),
    Rule("attribution", roles.names_of_others, is_contradiction=True),
    Rule("cause", additions.cause_added, is_contradiction=False, is_addition=True),
)


def rules_against(alignment: Alignment, rules: Sequence[Rule] = RULES) -> list[Rule]:
    """Those that are on and say that the passage does not carry the claim."""
    pair = Pair(alignment)
    return [rule for rule in rules if rule.is_on and (pair.is_across or not rule.is_across_only) and rule.applies(pair)]


def switched(off: Collection[str]) -> Sequence[Rule]:
    """The rules without those of these names. Raises ValueError for a name that no rule has."""
    if unknown := set(off) - {rule.name for rule in RULES}:
        raise ValueError(f"there are no rules {sorted(unknown)}; choose from {[rule.name for rule in RULES]}")
    return [rule for rule in RULES if rule.name not in off]
