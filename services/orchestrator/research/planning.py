"""The plan of the first round without a model: the question itself, its names, its several questions, and its quoted phrases; where
and when to look is read from its words."""

from collections.abc import Sequence
from datetime import UTC, datetime

from kit.queries.planning import clauses
from kit.queries.planning import plan as plan_search
from kit.queries.rewriting import distinct
from kit.queries.shape import HYBRID, LEXICAL, route
from kit.temporal.calendar import Moment
from kit.temporal.reading import Period
from services.orchestrator.log.events import MetadataValues, SearchFilter
from services.orchestrator.research.models import NO_FILTER, PlannedSearch, Purpose, ResearchPlan
from services.orchestrator.research.question.parts import find_subjects

MOST_FIRST = 6
"""Searches of the first round."""
_MOST_SUBJECTS = 3
CHANNEL = "channel"
"""Metadata field of a message's channel."""


def plan_by_rules(question: str, now: datetime, asked: SearchFilter | None = None) -> ResearchPlan:
    """The plan for a question that stands alone. `asked` is the request's own filter: every search keeps to it. A time or a channel
    that the question names is looked at besides, since not every document has a date. The same question at the same moment has
    the same plan."""
    planned = plan_search(question, Moment(now))
    chosen = route(question)
    named = _named_filter(planned.periods, planned.channels)
    searches = [
        PlannedSearch(question, Purpose.QUESTION),
        *([PlannedSearch(question, Purpose.FILTERED, filter=named)] if named.is_set and asked is None else []),
        *(PlannedSearch(each, Purpose.PHRASE, LEXICAL, (each,)) for each in planned.must_phrases),
        *(PlannedSearch(each.text, Purpose.SUBJECT) for each in find_subjects(question)[:_MOST_SUBJECTS]),
        *(PlannedSearch(each, Purpose.PART) for each in clauses(question)),
    ]
    return ResearchPlan(
        route=LEXICAL if chosen.strategy == LEXICAL and planned.must_phrases else HYBRID,
        reasons=chosen.reasons,
        searches=different(searches)[:MOST_FIRST],
        must_phrases=planned.must_phrases,
        should_phrases=planned.should_phrases,
        filter=asked or NO_FILTER,
    )


def different(searches: Sequence[PlannedSearch], before: Sequence[PlannedSearch] = ()) -> list[PlannedSearch]:
    """The searches without those that find what one before them finds: the same words in the same way. `before` are those
    of earlier rounds."""
    kept: dict[tuple[str, str, bool], list[str]] = {}
    found = []
    for number, each in enumerate([*before, *searches]):
        known = kept.setdefault((each.strategy, repr(each.must_phrases), each.filter.is_set), [])
        if len(distinct([*known, each.text])) > len(known):
            known.append(each.text)
            if number >= len(before):
                found.append(each)
    return found


def _named_filter(periods: Sequence[Period], channels: Sequence[str]) -> SearchFilter:
    """The time and the channel that a question names: from the first beginning to the last end."""
    starts = [period.span.start for period in periods if period.span.start is not None]
    ends = [period.span.end for period in periods if period.span.end is not None]
    return SearchFilter(
        (MetadataValues(CHANNEL, tuple(channels)),) if channels else (),
        min(starts).astimezone(UTC) if len(starts) == len(periods) > 0 else None,
        max(ends).astimezone(UTC) if len(ends) == len(periods) > 0 else None,
    )
