"""Words that say the opposite of each other: a sentence that has the opposite of a question's word, and not the word itself, says
something else. English; for questions in other languages nothing is known."""

from collections.abc import Collection
from functools import cache

from kit.language.terms import stem

_OPPOSITES = (
    "before/after first/last increase/decrease increase/reduce rise/fall rise/decline high/low higher/lower highest/lowest "
    "more/less more/fewer most/least north/south east/west northern/southern eastern/western old/new oldest/newest older/younger "
    "young/old large/small larger/smaller largest/smallest long/short strong/weak best/worst better/worse win/lose gain/lose "
    "retain/lose victory/defeat success/failure succeed/fail accept/refuse accept/reject agree/refuse agree/disagree "
    "allow/prohibit allow/prevent allow/forbid uphold/reject support/oppose begin/end start/end start/stop begin/stop "
    "open/close join/leave "
    "enter/leave remain/leave arrive/depart include/exclude legal/illegal lawful/unlawful possible/impossible able/unable "
    "known/unknown visible/invisible stable/unstable dependent/independent regular/irregular formal/informal direct/indirect "
    "public/private early/late earlier/later earliest/latest ancient/modern medieval/modern prior/following majority/minority "
    "major/minor maximum/minimum import/export internal/external inside/outside upper/lower above/below positive/negative "
    "male/female men/women rich/poor common/rare always/never all/none same/different similar/different few/many single/multiple "
    "true/false create/destroy build/destroy buy/sell give/receive send/receive add/remove attach/detach attack/defend "
    "offensive/defensive military/civilian ally/enemy friend/enemy primary/secondary active/passive easy/difficult simple/complex "
    "fast/slow hot/cold summer/winter heavy/light full/empty born/die alive/dead"
)


def opposed(word_stem: str, stems: Collection[str]) -> bool:
    """Whether `stems` hold an opposite of the word, and not the word itself."""
    return word_stem not in stems and any(each in stems for each in _by_stem().get(word_stem, ()))


@cache
def _by_stem() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for pair in _OPPOSITES.split():
        left, right = map(stem, pair.split("/"))
        found.setdefault(left, set()).add(right)
        found.setdefault(right, set()).add(left)
    return {word: frozenset(others) for word, others in found.items()}
