"""Makes the labelled claims that scripts/judge/fit.py fits on: the written ones, changes of true sentences, lists with claims about
them, and the pairs of HaluEval and Breaking NLI."""

import gzip
import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from evals.claims.sets import is_fitted_on
from evals.claims.written import WrittenClaim, WrittenPassage, read_written
from scripts.judge.captions import general, passive, trimmed
from scripts.judge.changes import change, combined, shortened
from scripts.judge.rows import row_claims

_IDEOGRAPHS = re.compile("[\u3400-\u9fff]")
_LONGEST_PASSAGE, _LONGEST_CLAIM = 1500, 700
_HALUEVAL = ("qa_multi-turn_data", "qa_one-turn_data")
_RESPONSES, _LISTS, _PAIRS, _CAPTIONS = 250, 170, 1500, 500
_OF_ANOTHER, _COMPARED = 4, 80
OWN = "own:"
"""Begins the group of claims that were written for the judge."""
WRITTEN = Path(__file__).with_name("written")
_Any = TypeVar("_Any")
_Passages = Sequence[tuple[str, str, str]]
"""Group, heading and text of each."""


class Case(NamedTuple):
    """A claim about a passage."""

    claim: str
    passage: str
    heading: str
    is_true: int
    kind: str
    language: str
    group: str
    """Cases of one group share a passage: they are never divided among folds."""


def make_cases(folder: Path) -> list[Case]:
    """The cases, always the same ones."""
    made = (case for source in _SOURCES for case in source(_Maker(folder, random.Random(5))))  # noqa: S311 - a sample
    return [each for each in dict.fromkeys(made) if each.claim.strip() and len(each.claim) < _LONGEST_CLAIM]


def written_cases() -> list[Case]:
    """The claims that were written for the judge, without what is made of them."""
    return [
        _case_of(passage, claim, f"{OWN}{passage.text[:60]}")
        for passage in read_written(WRITTEN)
        for claim in passage.claims
    ]


def _case_of(passage: WrittenPassage, claim: WrittenClaim, group: str) -> Case:
    same = claim.language == passage.language
    language = passage.language if same else f"{passage.language}>{claim.language}"
    return Case(claim.text, passage.text, passage.heading, int(claim.is_true), claim.kind, language, group)


def source_of(case: Case) -> str:
    """Where a case comes from: each source counts alike, and its true and false claims count alike."""
    return case.group[:4]


@dataclass
class _Maker:
    folder: Path
    rng: random.Random

    def rows(self) -> Iterator[Case]:
        """Lists, and claims about them."""
        for made in row_claims(_LISTS, self.rng):
            heading, group = self.rng.choice(["", "Price list"]), f"rows{made.passage[:60]}"
            yield Case(made.claim, made.passage, heading, int(made.is_true), made.kind, made.language, group)

    def written(self) -> Iterator[Case]:
        """The claims that were written, and changes of the sentences that they are about."""
        passages = read_written(WRITTEN)
        for passage in passages:
            group = f"{OWN}{passage.text[:60]}"
            yield from (_case_of(passage, claim, group) for claim in passage.claims)
            self.rng.seed(group)
            own = _sentences(passage.text)
            alike = [each for each in passages if each.language == passage.language and each is not passage]
            other = _sentences(self.rng.choice(alike).text) if alike else []
            for place in self.rng.sample(range(len(own)), min(2, len(own))):
                of_sentence = self._of_sentence(
                    own, place, passage.text, passage.heading, other or [""], passage.language, group, 4
                )
                yield from (each._replace(kind=f"changed {each.kind}") for each in of_sentence)
            claims = [claim for each in alike for claim in each.claims if claim.is_true]
            for claim in self._nearest(passage.text, claims, lambda claim: claim.text, _OF_ANOTHER):
                yield Case(claim.text, passage.text, passage.heading, 0, "of another", claim.language, group)

    def knowledge(self) -> Iterator[Case]:
        """Sentences of HaluEval's passages, of the half that evals/claims does not measure with."""
        texts = {
            row["knowledge"].strip()
            for name in _HALUEVAL
            for row in _rows(self.folder / f"halluc_halueval/{name}.jsonl.gz")
            if is_fitted_on(row["knowledge"].strip())
        }
        passages = [(text, "", re.sub(r"(?<=[a-z)\d])\.(?=[A-Z])", ". ", text)) for text in sorted(texts)]
        yield from self._changed(passages, "en", "know", 6)

    def responses(self) -> Iterator[Case]:
        """Sentences of HaluEval's general answers."""
        rows = _rows(self.folder / "halluc_halueval/general_data.jsonl.gz")
        texts = [text.strip() for row in rows for text in row["chatgpt_response"].split("\n") if 160 < len(text) < 900]
        found = [(text[:60], "", text) for text in texts if len(_sentences(text)) > 1]
        self.rng.shuffle(found)
        yield from self._changed(found[:_RESPONSES], "en", "resp", 6)

    def _changed(self, passages: _Passages, language: str, source: str, most: int) -> Iterator[Case]:
        """A true sentence of each passage, and what can be made of it."""
        for number, (group, title, text) in enumerate(passages):
            own = _sentences(text)
            if not own:
                continue
            other = _sentences(passages[(number + 37) % len(passages)][2]) or [""]
            place = self.rng.sample(range(len(own)), min(1, len(own)))[0]
            passage = text if self.rng.random() < 0.35 and len(text) < _LONGEST_PASSAGE else self._window(own, place)
            if len(passage) > _LONGEST_PASSAGE:
                continue
            heading = title if self.rng.random() < 0.6 else ""
            yield from self._of_sentence(own, place, passage, heading, other, language, source + group, most)

    def _of_sentence(
        self,
        own: Sequence[str],
        place: int,
        passage: str,
        heading: str,
        other: Sequence[str],
        language: str,
        group: str,
        most: int,
    ) -> Iterator[Case]:
        true = own[place]
        near = own[(place + 1) % len(own)] if len(own) > 1 and self.rng.random() < 0.3 else self.rng.choice(other)
        elsewhere = near if near not in passage else self.rng.choice(other)
        changes = list(change(true, passage, elsewhere, language, self.rng))
        self.rng.shuffle(changes)
        yield Case(true, passage, heading, 1, "verbatim", language, group)
        if short := shortened(true):
            yield Case(short, passage, heading, 1, "shortened", language, group)
        beside = [each for each in own if each in passage and each != true]
        if beside and self.rng.random() < 0.7:
            both = self.rng.sample([true, self.rng.choice(beside)], 2)
            yield Case(combined(both[0], both[1], language), passage, heading, 1, "combined", language, group)
        for each in changes[:most]:
            yield Case(each.text, passage, heading, 0, each.kind, language, group)
        outside = [each for each in own if each not in passage]
        for text in self.rng.sample(outside, min(2, len(outside))):
            yield Case(text, passage, heading, 0, "beside", language, group)
        if beside and changes and self.rng.random() < 0.3:
            text = combined(self.rng.choice(beside), changes[0].text, language)
            yield Case(text, passage, heading, 0, f"combined {changes[0].kind}", language, group)

    def _window(self, sentences: Sequence[str], place: int) -> str:
        first = max(0, place - self.rng.randint(0, 2))
        return " ".join(sentences[first : place + 1 + self.rng.randint(0, 2)])

    def breaking_nli(self) -> Iterator[Case]:
        """Its pairs; its sentences, shorter and more general; and others that are alike."""
        pairs = list(_rows(self.folder / "nli_small/breaking_nli.jsonl.gz"))
        carried = [pair for pair in pairs if pair["gold_label"] == "entailment"]
        others = [pair for pair in pairs if pair["gold_label"] != "entailment"]
        self.rng.shuffle(others)
        for pair in carried + others[:_PAIRS]:
            is_true = int(pair["gold_label"] == "entailment")
            passage = pair["sentence1"]
            yield Case(pair["sentence2"], passage, "", is_true, f"bnli {pair['category']}", "en", f"bnli{passage}")
        sentences = sorted({pair["sentence1"] for pair in pairs})
        for passage in self.rng.sample(sentences, min(_CAPTIONS, len(sentences))):
            group = f"bnli{passage}"
            made = dict.fromkeys(each for each in (general(passage), trimmed(passage), passive(passage)) if each)
            for text in made:
                yield Case(text, passage, "", 1, "general", "en", group)
            alike = [each for each in sentences if each != passage]
            for text in self._nearest(passage, alike, str, 2):
                yield Case(general(text) or text, passage, "", 0, "of another", "en", group)

    def _nearest(self, text: str, others: Sequence[_Any], text_of: Callable[[_Any], str], count: int) -> list[_Any]:
        """Those that share the most words with `text`, of a sample of the others."""
        words = _long_words(text)
        some = self.rng.sample(others, min(_COMPARED, len(others)))
        return sorted(some, key=lambda each: -len(words & _long_words(text_of(each))))[:count]

    def halueval(self) -> Iterator[Case]:
        """The half that evals/claims does not measure with."""
        all_rows = [row for name in _HALUEVAL for row in _rows(self.folder / f"halluc_halueval/{name}.jsonl.gz")]
        rows = [row for row in all_rows if is_fitted_on(row["knowledge"].strip())]
        for row in rows:
            passage = row["knowledge"].strip()
            for answer, is_true in ((row["right_answer"], 1), (row["hallucinated_answer"], 0)):
                yield Case(f"{row['question']} {answer}", passage, "", is_true, "halueval", "en", f"know{passage}")
            others = [each for each in rows if each["knowledge"] != row["knowledge"]]
            for other in self._nearest(passage, others, lambda each: str(each["question"]), 1):
                claim = f"{other['question']} {other['right_answer']}"
                yield Case(claim, passage, "", 0, "of another", "en", f"know{passage}")


def _long_words(text: str) -> set[str]:
    return set(re.findall(r"\w{4,}", text.lower()))


def _sentences(text: str) -> list[str]:
    ends = r"(?<=[.!?。।])\s*(?=\S)" if re.search("[。।]", text) else r"(?<=[.!?])\s+"
    found = (each.strip() for each in re.split(ends, text))
    return [each for each in found if 25 < len(each) < 260 or (_IDEOGRAPHS.search(each) and 10 < len(each) < 90)]


def _rows(path: Path) -> Iterable[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


_SOURCES = (_Maker.written, _Maker.knowledge, _Maker.responses, _Maker.rows, _Maker.breaking_nli, _Maker.halueval)
"""Each draws its own random numbers, so that more of one leaves the others as they are."""
