"""What a request for a summary asks for: how long it may be, and what it should look at. The words of the request say it."""

import re
from dataclasses import dataclass
from enum import Enum


class Length(Enum):
    """Sentences of a summary: for each section, and of the whole at most."""

    SHORT = (1, 8)
    USUAL = (2, 90)
    LONG = (4, 160)

    @property
    def of_a_section(self) -> int:
        return self.value[0]

    @property
    def at_most(self) -> int:
        return self.value[1]


@dataclass(frozen=True)
class SummaryWishes:
    """What is asked for."""

    length: Length = Length.USUAL
    focus: str = ""
    """Words that the summary should look at; empty for all alike."""


_SHORT = re.compile(
    r"\b(short(er|ly)?|brief(ly)?|concise|tl;?dr|in a nutshell|(one|two|three|few) sentences?|one paragraph|kurz\w*|knapp\w*"
    r"|brève\w*|courte?|breve\w*|cort[oa]|resumid[oa])\b",
    re.IGNORECASE,
)
_LONG = re.compile(
    r"\b(long(er)?|detailed|in detail|thorough(ly)?|comprehensive|section by section|chapter by chapter"
    r"|ausführlich\w*|detailliert\w*|détaillée?|longue?|detallad[oa]|larg[oa])\b",
    re.IGNORECASE,
)
_FOCUS = re.compile(
    r"(?:focus(?:ing|ed)? on|with (?:a )?focus on|with (?:an )?emphasis on|especially|in particular|regarding"
    r"|with regard to|mit (?:dem )?(?:fokus|schwerpunkt) auf|insbesondere|en particulier|sobre todo|especialmente)"
    r"\s+(?P<focus>[^.!?;\n]{2,200})"
    r"|what (?:do|does) (?:\w+ ){1,4}says? about (?P<about>[^.!?;\n]{2,200})",
    re.IGNORECASE,
)


def read_wishes(message: str) -> SummaryWishes:
    """The wishes that the message has words for."""
    focus = _FOCUS.search(message)
    rest = message[: focus.start()] + message[focus.end() :] if focus else message
    length = Length.SHORT if _SHORT.search(rest) else Length.LONG if _LONG.search(rest) else Length.USUAL
    return SummaryWishes(length, (focus["focus"] or focus["about"]).strip() if focus else "")
