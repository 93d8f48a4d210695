"""What speaks for and against a claim being carried by a passage: the features of judge.json, in its order."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kit.language.opposites import opposed
from services.reranker.judging import cues
from services.reranker.judging.network import Comparison, Weights, logits
from services.reranker.judging.reading import ReadText, Word
from services.reranker.models import Float32

Flags = NDArray[np.bool_]
NONE = math.nan
_CATEGORY_NAMES = (
    "negation",
    "universal",
    "partial",
    "limiting",
    "planned",
    "done",
    "condition",
    "cause",
    "more",
    "less",
)
ALIGNMENT = (
    "words", "passage_words", "pooled_cosine", "mean_best", "least_best", "least_three", "best_p10", "best_p25", "share_below_75",
    "share_below_85", "share_exact", "share_exact_in_window", "mean_in_unit", "least_in_unit", "mean_in_window", "least_in_window",
    "window_units", "second_unit_gain", "window_left_over", "window_least", "window_words_ratio", "numbers", "numbers_missing",
    "numbers_missing_in_window", "numbers_missing_in_unit", "number_neighbour", "number_neighbour_exact", "number_row", "names",
    "names_missing", "names_missing_in_window", "name_least", "name_mean", "name_nearest", "name_inversions", "inversions",
    "jump_median", "same_least",
    "same_mean", "substituted", "substituted_cosine", "substituted_weight", "opposites", "opposites_back", "unmatched_run",
    "unmatched_tail", "other_script", "direction", "row_units", "content_mean_below", "new_content",
    "content_found", "content_found_in_unit", "unit_content_claimed", "opposites_in_place", "exact_missing", "cosine_of_unit",
    *(f"{name}_{what}" for name in _CATEGORY_NAMES for what in ("claim", "window", "claim_best", "window_best")),
)  # fmt: skip
_FAR = 5.0
"""Words: from this distance on, a step between the places of two neighbours hardly counts more."""
FEATURES = (*ALIGNMENT, "network_supported", "network_contradicted")


@dataclass(frozen=True)
class Compared:
    """Features, and the unit that the claim lies nearest to."""

    features: list[float]
    span: tuple[int, int]
    alignment: "Alignment"


def compare(claim: ReadText, passage: ReadText, networks: Sequence[Weights]) -> Compared | None:
    """None where one of the texts has no words. The networks' verdicts are averaged."""
    if not len(claim.words) or not len(passage.words):
        return None
    alignment = Alignment(claim, passage)
    compared = alignment.comparison()
    said = np.mean([logits(each, compared) for each in networks], axis=0)
    return Compared([*alignment.features(), *network_features(said)], passage.units[alignment.units[0]], alignment)


def network_features(said: Float32) -> list[float]:
    """Of the three numbers that `network.logits` gives."""
    supported, contradicted, not_found = map(float, said)
    return [supported - float(np.logaddexp(contradicted, not_found)), contradicted - not_found]


class Alignment:
    """How the words of a claim lie to those of a passage. Neither may be without words."""

    def __init__(self, claim: ReadText, passage: ReadText) -> None:
        self.claim, self.passage = claim, passage
        self.cosines: Float32 = claim.vectors @ passage.vectors.T
        self.weights: Float32 = np.array([_weight(word) for word in claim.words], np.float32)
        self.content: Flags = np.asarray(self.weights >= 0.5)
        self.unit_of = np.array([word.unit for word in passage.words])
        self.same = self._same_words()
        self.best_any = self.cosines.max(1)
        self.units = self._window()
        self.in_window = np.isin(self.unit_of, self.units)
        self.window = [word for word, inside in zip(passage.words, self.in_window, strict=True) if inside]
        self.window_cosines: Float32 = self.cosines[:, self.in_window]
        self.window_same = self.same[:, self.in_window]
        preferred = self.window_cosines + 0.25 * self.window_same
        self.where = preferred.argmax(1)
        self.best = self.window_cosines[np.arange(len(claim.words)), self.where]
        self.exact_match: Flags = np.asarray(self.window_same.any(1))
        self.back = self.window_cosines.max(0)

    def features(self) -> list[float]:
        """The features that ALIGNMENT names."""
        found = [*self._alignment(), *self._exact(), *self._order(), *self._substitution(), *self._categories()]
        return [float(each) for each in found]

    def comparison(self) -> Comparison:
        """What the network reads."""
        window = np.flatnonzero(self.in_window)
        places = window[self.where]
        steps = np.tanh(np.diff(self.where) / _FAR)
        beside = self.unit_of[places][1:] == self.unit_of[places][:-1]
        exact = self.window_same[np.arange(len(self.where)), self.where]
        own = [_flags(word) for word in self.claim.words]
        seen = np.column_stack([
            own, [_flags(self.passage.words[place]) for place in places], exact, self.exact_match, self.same.any(1), self.best,
            self.best_any, self.in_unit, [0, *steps], [*steps, 0], [0, *beside], [*beside, 0], self.unit_of[places] == 0,
        ])  # fmt: skip
        nearness = float(self.claim.pooled @ self.passage.pooled)
        whole = [nearness, math.log1p(len(own)), math.log1p(len(window)), self.gain]
        return Comparison(
            self.claim.vectors,
            self.passage.vectors[places],
            seen.astype(np.float32),
            self.weights / self.weights.sum(),
            np.array(whole, np.float32),
        )

    def _same_words(self) -> Flags:
        keys = [_key(word) for word in self.claim.words], [_key(word) for word in self.passage.words]
        numbered: dict[str, int] = {}
        left, right = (np.array([numbered.setdefault(key, len(numbered)) for key in each]) for each in keys)
        return np.asarray(left[:, None] == right[None, :])

    def _window(self) -> list[int]:
        """The unit that carries the most of the claim, and a second one that adds to it."""
        by_unit = {int(unit): self.cosines[:, self.unit_of == unit].max(1) for unit in np.unique(self.unit_of)}
        extra = {unit: 0.1 * self.same[:, self.unit_of == unit].any(1) for unit in by_unit}
        heading = by_unit.get(0)
        scored = {unit: best + extra[unit] for unit, best in by_unit.items() if unit or len(by_unit) == 1}
        first = max(scored, key=lambda unit: float(self.weights @ scored[unit]))
        self.in_unit = by_unit[first]
        with_first = {unit: np.maximum(scored[first], other) for unit, other in scored.items() if unit != first}
        total = float(self.weights.sum())
        self.gain, chosen = 0.0, [first]
        if with_first:
            second = max(with_first, key=lambda unit: float(self.weights @ with_first[unit]))
            self.gain = float(self.weights @ (with_first[second] - scored[first])) / total
            if self.gain > 0.01:
                chosen.append(second)
        if heading is not None and 0 not in chosen:
            chosen.append(0)
        return chosen

    def _alignment(self) -> list[float]:
        best, low = self.best, np.sort(self.best)
        weights = self.weights / self.weights.sum()
        left_over = np.array([_weight(word) for word in self.window if word.unit], np.float32)
        back = self.back[np.array([bool(word.unit) for word in self.window], bool)]
        left_over_share = float(left_over @ (1 - back) / left_over.sum()) if len(back) else NONE
        return [
            len(self.claim.words), len(self.passage.words), float(self.claim.pooled @ self.passage.pooled),
            float(weights @ self.best_any), low[0], low[:3].mean(), *_percentiles(low, 10, 25),
            float(weights @ (best < 0.75)), float(weights @ (best < 0.85)), float(weights @ self.same.any(1)),
            float(weights @ self.exact_match), float(weights @ self.in_unit), self.in_unit.min(), float(weights @ best), best.min(),
            len(self.units), self.gain, left_over_share, back.min() if len(back) else NONE, len(back) / len(best),
        ]  # fmt: skip

    def _exact(self) -> list[float]:
        numbers = [i for i, word in enumerate(self.claim.words) if word.number]
        there = {word.number for word in self.passage.words}
        window = {word.number for word in self.window}
        first = {word.number for word in self.passage.words if word.unit in (self.units[0], 0)}
        names = [i for i, word in enumerate(self.claim.words) if word.is_name and not word.number]
        missing = [i for i in names if not self.same[i].any()]
        return [
            len(numbers), sum(self.claim.words[i].number not in there for i in numbers),
            sum(self.claim.words[i].number not in window for i in numbers),
            sum(self.claim.words[i].number not in first for i in numbers),
            *self._number_neighbours(numbers), self._number_row(numbers), len(names), len(missing),
            sum(not self.exact_match[i] for i in names), min((self.best[i] for i in names), default=NONE),
            np.mean([self.best[i] for i in names]) if names else NONE, self._names_nearest(names),
        ]  # fmt: skip

    def _number_neighbours(self, numbers: Sequence[int]) -> list[float]:
        """The least likeness of what follows a number in the claim and in the passage, and how often it is the same word."""
        likeness, same = [], []
        for i in numbers:
            places = [j for j, word in enumerate(self.passage.words) if word.number == self.claim.words[i].number]
            if not places or i + 1 >= len(self.claim.words):
                continue
            following = [j + 1 for j in places if j + 1 < len(self.passage.words)]
            if following:
                likeness.append(max(float(self.cosines[i + 1, j]) for j in following))
                same.append(any(self.same[i + 1, j] for j in following))
        return [min(likeness, default=NONE), float(np.mean(same)) if same else NONE]

    def _number_row(self, numbers: Sequence[int]) -> float:
        """Of the words beside the number in the claim, how much more another unit than the number's has of them."""
        worst = NONE
        others = [i for i in range(len(self.claim.words)) if i not in numbers and self.content[i]]
        for i in numbers:
            own = {word.unit for word in self.passage.words if word.number == self.claim.words[i].number}
            if not own or not others:
                continue
            scored = self.cosines[others] + 0.1 * self.same[others]
            inside = scored[:, np.isin(self.unit_of, [*own, 0])].max(1)
            lost = float((scored.max(1) - inside).max())
            worst = lost if math.isnan(worst) else max(worst, lost)
        return worst

    def _names_nearest(self, names: Sequence[int]) -> float:
        """Share of the words behind the claim's names that stand nearest to the same name in the passage."""
        named = [j for j, word in enumerate(self.passage.words) if word.is_name and not word.number]
        right: list[bool] = []
        for i in names:
            if not self.same[i].any():
                continue
            for k in range(i + 1, min(i + 4, len(self.claim.words))):
                if self.claim.words[k].is_name:
                    break
                if not self.content[k]:
                    continue
                place = int((self.cosines[k] + 0.25 * self.same[k]).argmax())
                before = [
                    j for j in named if j <= place and self.passage.words[j].unit == self.passage.words[place].unit
                ]
                if before:
                    stem = self.passage.words[before[-1]].stem
                    near = {self.passage.words[j].stem for j in before[-2:]} if before[-1] == place else {stem}
                    right.append(self.claim.words[i].stem in near)
        return float(np.mean(right)) if right else NONE

    def _order(self) -> list[float]:
        names = [i for i, word in enumerate(self.claim.words) if word.is_name and self.exact_match[i]]
        sure = [i for i in range(len(self.claim.words)) if self.content[i] and self.best[i] > 0.8]
        jumps = np.abs(np.diff(self.where[sure])) if len(sure) > 1 else np.zeros(1)
        same = self.best[self.exact_match & self.content]
        return [
            _inversions(self.where[names]), _inversions(self.where[sure]), _percentiles(np.sort(jumps), 50)[0],
            same.min() if len(same) else NONE, same.mean() if len(same) else NONE,
        ]  # fmt: skip

    def _substitution(self) -> list[float]:
        """Words of the claim that the window does not have, where it has another one in their place."""
        lone_back: Flags = np.asarray(~self.window_same.any(0))
        content = self.content
        lost = [i for i in range(len(self.best)) if content[i] and not self.exact_match[i]]
        swapped = [
            (float(self.window_cosines[i, j]), float(self.weights[i]))
            for i in lost
            if lone_back[j := int(self.window_cosines[i].argmax())] and int(self.window_cosines[:, j].argmax()) == i
        ]
        stems = [{word.stem for word in words} for words in (self.claim.words, self.window)]
        opposites = sum(opposed(stem, stems[1]) for stem in stems[0]), sum(opposed(stem, stems[0]) for stem in stems[1])
        below = content & (self.best < 0.8)
        share_exact = float(self.exact_match.mean())
        more, less = self._direction(self.claim.words), self._direction(self.window)
        total = float(self.weights.sum())
        return [
            len(swapped), max((each for each, _ in swapped), default=NONE), sum(weight for _, weight in swapped) / total,
            *opposites, _longest_run(below), float(np.mean(below[-max(2, len(below) // 3) :])), float(share_exact < 0.1),
            float(np.sign(more) * np.sign(less)), float(_is_row(self.passage, self.units[0])),
            float((self.weights * content) @ (self.best < 0.8)) / total, len(lost) / max(1, int(content.sum())),
            *self._by_words(content, lost, lone_back),
        ]  # fmt: skip

    def _by_words(self, content: Flags, lost: Sequence[int], lone_back: Flags) -> list[float]:
        """What the words alone say: shares of the claim that are found, and of its unit that is claimed."""
        unit = self.unit_of == self.units[0]
        of_unit = [j for j in np.flatnonzero(unit).tolist() if not self.passage.words[j].is_stop]
        lone = {word.stem for word, alone in zip(self.window, lone_back, strict=True) if alone}
        count = max(1, int(content.sum()))
        strict = [i for i, word in enumerate(self.claim.words) if word.is_name or word.number]
        mean = self.passage.vectors[unit].mean(0)
        own = self.claim.vectors.mean(0)
        return [
            float(self.same[content].any(1).sum()) / count, float(self.same[content][:, unit].any(1).sum()) / count,
            float(np.mean(self.same[:, of_unit].any(0))) if of_unit else NONE,
            sum(opposed(self.claim.words[i].stem, lone) for i in lost), sum(not self.same[i].any() for i in strict),
            float(mean @ own / (np.linalg.norm(mean) * np.linalg.norm(own) + 1e-6)),
        ]  # fmt: skip

    @staticmethod
    def _direction(words: Sequence[Word]) -> int:
        return sum((word.lower in cues.MORE) - (word.lower in cues.LESS) for word in words)

    def _categories(self) -> list[float]:
        found: list[float] = []
        for category in range(len(cues.CATEGORIES)):
            mine = [i for i, word in enumerate(self.claim.words) if word.decides[category]]
            theirs = [j for j, word in enumerate(self.window) if word.unit and word.decides[category]]
            found += [
                len(mine), len(theirs), min((float(self.window_cosines[i].max()) for i in mine), default=NONE),
                min((float(self.window_cosines[:, j].max()) for j in theirs), default=NONE),
            ]  # fmt: skip
        return found


def _flags(word: Word) -> list[bool]:
    kind = [word.is_stop, bool(word.number), word.is_name, word.is_first]
    return [*kind, *word.decides]


def _weight(word: Word) -> float:
    if word.number or word.is_name:
        return 1.5
    if any(word.decides):
        return 1.0
    return 0.2 if word.is_stop else 1.0


def _key(word: Word) -> str:
    return f"#{word.number}" if word.number else word.stem


def _percentiles(ordered: Float32, *shares: int) -> list[float]:
    """Of values in order, between two of them by a line: numpy's own takes a hundred times as long."""
    places = [(len(ordered) - 1) * share / 100 for share in shares]
    lower = [(int(place), place - int(place)) for place in places]
    return [float(ordered[at] + (ordered[min(at + 1, len(ordered) - 1)] - ordered[at]) * part) for at, part in lower]


def _inversions(places: NDArray[np.int64]) -> float:
    if len(places) < 2:
        return NONE
    later = places[None, :] - places[:, None]
    upper = np.triu_indices(len(places), 1)
    return float(np.mean(later[upper] < 0))


def _longest_run(flags: Flags) -> int:
    longest = current = 0
    for flag in flags:
        current = current + 1 if flag else 0
        longest = max(longest, current)
    return longest


def _is_row(passage: ReadText, unit: int) -> bool:
    start, end = passage.units[unit]
    text = passage.text[start:end]
    return text.count(": ") > 1 or " | " in text
