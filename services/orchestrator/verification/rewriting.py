"""What becomes of an answer's text after its claims were judged: marks change, and sentences are left out."""

import re
from collections.abc import Collection, Mapping, Sequence

from services.orchestrator.verification.claims import Claim

_MARK_AND_GAP = re.compile(r"\s*\[\d{1,9}\]")
_GONE = "\x00"
"""Stands for a sentence that is left out, until the text around it is tidied."""
_EMPTY_LINE = re.compile(rf"[ \t]*(?:[-*•–]|\d{{1,3}}[.)])?[ \t|]*(?:{_GONE}[ \t]*)+")
_GONE_IN_LINE = re.compile(rf"^(?:[ \t]*{_GONE})+[ \t]*|[ \t]*{_GONE}")
_LIST_LINE = re.compile(r"\s*(?:[-*•–|]|\d{1,3}[.)])")
_BLANK_LINES = re.compile(r"\n\s*\n\s*")


def rewrite(answer: str, claims: Sequence[Claim], marks: Mapping[int, Sequence[int]], removed: Collection[int]) -> str:
    """The answer in which the claims at these positions cite `marks`, without the sentences in `removed`. Other text stays as it
    is."""
    pieces: list[str] = []
    done = 0
    for position, claim in enumerate(claims):
        pieces.append(answer[done : claim.start])
        if claim.sentence in removed:
            pieces.append(_GONE)
        elif position in marks:
            pieces.append(_marked(answer, claim, marks[position]))
        else:
            pieces.append(answer[claim.start : claim.stop])
        done = claim.stop
    text = "".join([*pieces, answer[done:]])
    return _tidied(text) if removed else text.strip()


def _marked(answer: str, claim: Claim, numbers: Sequence[int]) -> str:
    words, behind = answer[claim.start : claim.end], answer[claim.end : claim.stop]
    gap = words[: len(words) - len(words.lstrip())]
    words, behind = _MARK_AND_GAP.sub("", words).lstrip(), _MARK_AND_GAP.sub("", behind)
    return gap + words + "".join(f" [{number}]" for number in numbers) + behind.rstrip("\n")


def _tidied(text: str) -> str:
    """Without what stands for sentences that are gone, the lines that were nothing else, and what only led up to them."""
    kept: list[str] = []
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if _EMPTY_LINE.fullmatch(line):
            rest = (each for each in lines[number + 1 :] if each.strip() and not _EMPTY_LINE.fullmatch(each))
            _drop_lead_in(kept, next(rest, ""))
        else:
            kept.append(_GONE_IN_LINE.sub("", line))
    return _BLANK_LINES.sub("\n\n", "\n".join(kept)).strip()


def _drop_lead_in(kept: list[str], follows: str) -> None:
    """Takes the last line away where it introduces nothing any more."""
    introducing = next((number for number in reversed(range(len(kept))) if kept[number].strip()), None)
    if introducing is None or _LIST_LINE.match(follows):
        return
    if kept[introducing].rstrip().endswith((":", "：")):
        del kept[introducing:]
