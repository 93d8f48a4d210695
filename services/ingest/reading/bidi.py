"""Logical order for lines with right-to-left letters. A PDF says where glyphs are painted; Hebrew and Arabic must be searched in
the order in which they are read. Where each glyph stands decides, not the order in the file, about which producers disagree."""

import bisect
import itertools
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

FIRST_RIGHT_TO_LEFT = "\u0590"
"""Hebrew is the first block of Unicode that runs leftwards."""
_SPACE_GAP = 0.18
"""Share of the type size that makes a gap a space: an Arabic space has a quarter, kerning a tenth."""
_LAM = "ل"
_ALEFS = "اأإآٱ"
_CLOSING_FIRST = {")": "(", "]": "[", "}": "{", "»": "«"}
_MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")
_IN_NUMBERS = frozenset(".,:/-%+")


class Glyph(NamedTuple):
    """A painted character, or one of several that a ligature stands for."""

    char: str
    box: tuple[float, float, float, float]
    """x0, y0, x1, y1 in points, origin at the top left of the page."""
    origin: float
    """x at which its pen began: the characters of one ligature share it."""
    size: float
    """Type size in points."""


@dataclass
class _Cluster:
    """What moves as one: a letter with its marks, a ligature, a space."""

    text: str
    x0: float
    x1: float
    size: float

    @property
    def direction(self) -> str:
        """ "R", "L", "N" for a digit, "" for what takes the direction of its neighbours."""
        kind = unicodedata.bidirectional(self.text[:1])
        return "R" if kind in ("R", "AL") else "L" if kind == "L" else "N" if kind in ("EN", "AN") else ""


def is_right_to_left(char: str) -> bool:
    """Whether a character is a letter of Hebrew, Arabic or another script that runs leftwards."""
    return char >= FIRST_RIGHT_TO_LEFT and unicodedata.bidirectional(char) in ("R", "AL")


def runs_right_to_left(text: str) -> bool:
    """Whether most of its letters do."""
    leftward = sum(1 for char in text if is_right_to_left(char))
    return 2 * leftward > sum(1 for char in text if char.isalpha())


def logical_text(glyphs: Sequence[Glyph]) -> str:
    """The text of one printed line. Two levels of Unicode's UAX 9, which is what printed lines have: the line's direction, and runs
    of the other."""
    clusters = sorted(_clusters(glyphs), key=lambda cluster: cluster.x0 + cluster.x1)
    painted = _spaced(clusters)
    if runs_right_to_left("".join(cluster.text for cluster in painted)):
        painted.reverse()
        text = "".join(cluster.text for cluster in _with_runs_reversed(painted, "LN"))
    else:
        text = "".join(cluster.text for cluster in _with_runs_reversed(painted, "R"))
    return _parentheses_facing(text)


def _clusters(glyphs: Sequence[Glyph]) -> list[_Cluster]:
    visible = [glyph for glyph in glyphs if not glyph.char.isspace()]
    marks = [glyph for glyph in visible if unicodedata.combining(glyph.char)]
    letters = [glyph for glyph in visible if not unicodedata.combining(glyph.char)]
    found = []
    for (_, box), together in itertools.groupby(letters, key=lambda glyph: (glyph.origin, glyph.box)):
        ligature = list(together)
        text = _ligature("".join(_plain(glyph.char) for glyph in ligature))
        found.append(_Cluster(text, box[0], box[2], ligature[0].size))
    _add_marks(found, marks)
    return found


def _add_marks(clusters: Sequence[_Cluster], marks: Sequence[Glyph]) -> None:
    """Gives each mark to the letter whose middle is nearest to its own."""
    if not clusters:
        return
    by_place = sorted(clusters, key=lambda cluster: cluster.x0 + cluster.x1)
    places = [cluster.x0 + cluster.x1 for cluster in by_place]
    added: dict[int, list[str]] = {}
    for mark in marks:
        place = mark.box[0] + mark.box[2]
        after = bisect.bisect_left(places, place)
        near = (bisect.bisect_left(places, places[after - 1]) if after else 0, min(after, len(places) - 1))
        added.setdefault(min(near, key=lambda at: abs(places[at] - place)), []).append(mark.char)
    for at, chars in added.items():
        by_place[at].text += "".join(chars)


def _plain(char: str) -> str:
    """A letter for a form of it: the shapes that Arabic letters take in a word have code points of their own."""
    is_form = "\ufb1d" <= char <= "\ufdff" or "\ufe70" <= char <= "\ufefc"
    return unicodedata.normalize("NFKC", char) if is_form else char


def _ligature(text: str) -> str:
    """PDFium turns a run around character by character, and the letters of a ligature with it."""
    return text[::-1] if len(text) == 2 and text[0] in _ALEFS and text[1] == _LAM else text


def _spaced(clusters: Sequence[_Cluster]) -> list[_Cluster]:
    """With spaces where there are gaps, and between letters of two directions: words, which search must find each on its own."""
    spaced: list[_Cluster] = []
    for cluster in clusters:
        if spaced and (_is_apart(spaced[-1], cluster) or {spaced[-1].direction, cluster.direction} == {"L", "R"}):
            spaced.append(_Cluster(" ", spaced[-1].x1, cluster.x0, cluster.size))
        spaced.append(cluster)
    return spaced


def _is_apart(before: _Cluster, after: _Cluster) -> bool:
    return after.x0 - before.x1 > _SPACE_GAP * max(after.size, before.size)


def _with_runs_reversed(clusters: Sequence[_Cluster], directions: str) -> list[_Cluster]:
    """Turns around each run of these directions, with the neutral clusters inside it."""
    result: list[_Cluster] = []
    run: list[_Cluster] = []
    neutral: list[_Cluster] = []
    for cluster in clusters:
        if cluster.direction and cluster.direction in directions and (not neutral or _holds(run, neutral, cluster)):
            run += [*neutral, cluster]
            neutral = []
        elif cluster.direction or not run:
            result += _reversed_run(run) + neutral
            in_run = bool(cluster.direction) and cluster.direction in directions
            run, neutral = ([cluster], []) if in_run else ([], [])
            result += [] if in_run else [cluster]
        else:
            neutral.append(cluster)
    return result + _reversed_run(run) + neutral


def _holds(run: Sequence[_Cluster], neutral: Sequence[_Cluster], after: _Cluster) -> bool:
    """Whether neutral characters between two parts of a run belong to it: two numbers are two runs unless a sign joins them."""
    if run[-1].direction == "N" and after.direction == "N":
        return len(neutral) == 1 and neutral[0].text in _IN_NUMBERS
    return True


def _reversed_run(run: Sequence[_Cluster]) -> list[_Cluster]:
    """The run turned around; numbers inside a right-to-left run are turned back."""
    turned = list(reversed(run))
    has_letters = any(cluster.direction == "R" for cluster in turned)
    return _with_runs_reversed(turned, "N") if has_letters else turned


def _parentheses_facing(text: str) -> str:
    """Some producers store the glyph that is seen, some the character that is intended: what closes before it opens is seen."""
    first = next((char for char in text if char in "()[]{}«»"), "")
    return text.translate(_MIRRORED) if first in _CLOSING_FIRST and _CLOSING_FIRST[first] in text else text
