"""Makes the labelled claims that scripts/fit_claim_judge.py fits on, out of public texts: sentences and changes of them, answers to
questions and wrong ones, the same sentences in two languages, rows, titles of abstracts, HaluEval's and Breaking NLI's pairs."""

import gzip
import json
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from scripts.claim_changes import change, combined, shortened, statement
from scripts.claim_rows import row_claims

_IDEOGRAPHS = re.compile("[\u3400-\u9fff]")
_LANGUAGES = ("ar", "de", "es", "hi", "th", "tr", "zh", "en")
_PARALLEL = ("de", "es", "en", "en", "ar", "tr", "zh", "hi")
_LONGEST_PASSAGE, _LONGEST_CLAIM = 1500, 700
_CASES = 7000
"""Whole groups are taken until there are so many; of HaluEval, of Breaking NLI and of rare kinds all are taken."""
_RARE = ("attribution", "condition", "even if", "unit", "plan", "scope")
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
    maker = _Maker(folder, random.Random(5))  # noqa: S311 - a sample
    cases = [each for each in dict.fromkeys(maker.all()) if each.claim.strip() and len(each.claim) < _LONGEST_CLAIM]
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.group, []).append(case)
    keys = sorted(groups)
    random.Random(1).shuffle(keys)  # noqa: S311 - a sample
    taken: list[Case] = []
    for key in keys:
        if len(taken) < _CASES:
            taken += groups[key]
    others = set(cases) - set(taken)
    rest = [case for case in cases if case in others]
    taken += [case for case in rest if case.group.startswith(("hal", "bnli"))]
    taken += [case for case in rest if any(kind in case.kind for kind in _RARE)]
    return list(dict.fromkeys([*taken, *_titles(folder, random.Random(2))]))  # noqa: S311 - a sample


def source_of(case: Case) -> str:
    """Where a case comes from: each source counts alike, and its true and false claims count alike."""
    if case.group.startswith("xquad"):
        return "xquad"
    return "answers" if "answer" in case.kind else case.group[:3]


@dataclass
class _Maker:
    folder: Path
    rng: random.Random

    def all(self) -> Iterator[Case]:
        squad = _json(self.folder / "qa_squad2_dev_half/dev-v2.0.cs224n.json.gz")["data"]
        passages = [
            (f"{article['title']}{number}", article["title"].replace("_", " "), each["context"])
            for article in squad
            for number, each in enumerate(article["paragraphs"])
        ]
        self.rng.shuffle(passages)
        yield from self._changed(passages[:500], "en", "squad", 6)
        pages = [
            page for page in _rows(self.folder / "ir_2wiki_multihop/corpus.jsonl.gz") if 150 < len(page["text"]) < 900
        ]
        self.rng.shuffle(pages)
        texts = [
            (page["_id"], page["title"], page["text"].replace("( ", "(").replace("- ", "-")) for page in pages[:700]
        ]
        yield from self._changed(texts, "en", "wiki", 6)
        for article in squad:
            for number, paragraph in enumerate(article["paragraphs"]):
                yield from self._answers(article["title"], number, paragraph)
        yield from self._across_languages()
        for made in row_claims(260, self.rng):
            heading = self.rng.choice(["", "Price list"])
            yield Case(
                made.claim,
                made.passage,
                heading,
                int(made.is_true),
                made.kind,
                made.language,
                f"rows{made.passage[:60]}",
            )
        yield from self._breaking_nli()
        yield from self._halueval()

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
        if beside and changes and self.rng.random() < 0.3:
            text = combined(self.rng.choice(beside), changes[0].text, language)
            yield Case(text, passage, heading, 0, f"combined {changes[0].kind}", language, group)

    def _window(self, sentences: Sequence[str], place: int) -> str:
        first = max(0, place - self.rng.randint(0, 2))
        return " ".join(sentences[first : place + 1 + self.rng.randint(0, 2)])

    def _answers(self, title: str, number: int, paragraph: dict[str, Any]) -> Iterator[Case]:
        """Questions of a paragraph with their answers, answers of others, and plausible ones where there is none."""
        answers = sorted({each["answers"][0]["text"] for each in paragraph["qas"] if each["answers"]})
        text, group = paragraph["context"], f"squad{title}{number}"
        for asked in self.rng.sample(paragraph["qas"], min(3, len(paragraph["qas"]))):
            heading = title.replace("_", " ") if self.rng.random() < 0.5 else ""
            if len(text) > 1400:
                continue
            if asked["is_impossible"]:
                for answer in asked["plausible_answers"][:1]:
                    yield Case(self._said(asked, answer["text"]), text, heading, 0, "adversarial answer", "en", group)
                continue
            right = asked["answers"][0]["text"]
            yield Case(self._said(asked, right), text, heading, 1, "answer", "en", group)
            if others := [each for each in answers if each not in right and right not in each]:
                yield Case(self._said(asked, self.rng.choice(others)), text, heading, 0, "other answer", "en", group)

    def _said(self, asked: dict[str, Any], answer: str) -> str:
        stated = statement(asked["question"], answer) if self.rng.random() < 0.6 else None
        return stated or f"{asked['question']} {answer}."

    def _across_languages(self) -> Iterator[Case]:
        texts: dict[str, dict[str, str]] = {}
        asked: dict[str, dict[str, tuple[str, str]]] = {}
        for language in _LANGUAGES:
            of_language = self.folder / f"ir_xquad_{language}"
            texts[language] = {row["_id"]: row["text"] for row in _rows(of_language / "corpus.jsonl.gz")}
            asked[language] = {
                row["_id"]: (row["text"], row["answers"][0]) for row in _rows(of_language / "queries.jsonl")
            }
        lines = (self.folder / "ir_xquad_en/qrels/test.tsv").read_text("utf-8").splitlines()[1:]
        of_passage: dict[str, list[str]] = defaultdict(list)
        for question, passage in (line.split("\t")[:2] for line in lines):
            of_passage[passage].append(question)
        for language in _LANGUAGES[:-1]:
            passages = [(f"p{key}", "", text) for key, text in texts[language].items()]
            self.rng.shuffle(passages)
            yield from self._changed(passages[: 70 if language in ("de", "es") else 35], language, "xquad", 4)
        for passage, questions in of_passage.items():
            for language in self.rng.sample(_LANGUAGES[:-1], 3):
                yield from self._answer_across(passage, questions, language, texts, asked)
            for _ in range(4):
                yield from self._sentence_across(passage, texts)

    def _answer_across(
        self,
        passage: str,
        questions: Sequence[str],
        language: str,
        texts: dict[str, dict[str, str]],
        asked: dict[str, dict[str, tuple[str, str]]],
    ) -> Iterator[Case]:
        of_passage = self.rng.choice([language, language, "en", "de", "es", "en"])
        of_claim = self.rng.choice([language, "en"])
        question = self.rng.choice(questions)
        english = asked["en"]
        others = [
            each
            for each in questions
            if english[each][1] not in english[question][1] and english[question][1] not in english[each][1]
        ]
        text = texts[of_passage][passage]
        if len(text) > _LONGEST_PASSAGE:
            return
        kind = "answer" if of_passage == of_claim else "answer across"
        pair, group = f"{of_claim}>{of_passage}", f"xquadp{passage}"
        words, right = asked[of_claim][question]
        yield Case(f"{words} {right}", text, "", 1, kind, pair, group)
        if others:
            yield Case(
                f"{words} {asked[of_claim][self.rng.choice(others)][1]}", text, "", 0, f"other {kind}", pair, group
            )

    def _sentence_across(self, passage: str, texts: dict[str, dict[str, str]]) -> Iterator[Case]:
        """A sentence of one language over the same passage in another."""
        one, other = self.rng.sample(_PARALLEL, 2)
        if one == other:
            return
        own, there = _sentences(texts[one][passage]), _sentences(texts[other][passage])
        if len(own) != len(there) or not own:
            return
        place = self.rng.randrange(len(own))
        window = self._window(there, place)
        pair, group = f"{one}>{other}", f"xquadp{passage}"
        yield Case(own[place], window, "", 1, "across", pair, group)
        strange = [each for each in texts[one] if each != passage]
        elsewhere = _sentences(texts[one][self.rng.choice(strange)]) or [""]
        changes = list(change(own[place], texts[one][passage], self.rng.choice(elsewhere), one, self.rng))
        self.rng.shuffle(changes)
        for each in changes[:2]:
            yield Case(each.text, window, "", 0, f"across {each.kind}", pair, group)
        if outside := [number for number in range(len(own)) if there[number] not in window]:
            yield Case(own[self.rng.choice(outside)], window, "", 0, "across other", pair, group)

    def _breaking_nli(self) -> Iterator[Case]:
        pairs = list(_rows(self.folder / "nli_small/breaking_nli.jsonl.gz"))
        carried = [pair for pair in pairs if pair["gold_label"] == "entailment"]
        others = [pair for pair in pairs if pair["gold_label"] != "entailment"]
        self.rng.shuffle(others)
        for pair in carried + others[:1400]:
            is_true = int(pair["gold_label"] == "entailment")
            passage = pair["sentence1"]
            yield Case(pair["sentence2"], passage, "", is_true, f"bnli {pair['category']}", "en", f"bnli{passage}")

    def _halueval(self) -> Iterator[Case]:
        """The half that evals/claims does not measure with."""
        for name in ("qa_multi-turn_data", "qa_one-turn_data"):
            for row in _rows(self.folder / f"halluc_halueval/{name}.jsonl.gz"):
                if sha256(row["knowledge"].strip().encode()).digest()[0] % 2 == 0:
                    for answer, is_true in ((row["right_answer"], 1), (row["hallucinated_answer"], 0)):
                        claim, passage = f"{row['question']} {answer}", row["knowledge"].strip()
                        yield Case(claim, passage, "", is_true, "halueval", "en", f"hal{row['knowledge']}")


def _titles(folder: Path, rng: random.Random) -> Iterator[Case]:
    """Titles of abstracts, which say what is found there, and of abstracts about the same. None that a claim of SciFact cites."""
    cited: set[str] = set()
    for claim in _rows(folder / "ir_scifact/claims.jsonl"):
        cited |= {str(each) for each in claim["cited_doc_ids"]} | {
            str(each["doc_id"]) for each in claim.get("evidence", ())
        }
    abstracts = [
        each
        for each in _rows(folder / "ir_scifact/corpus.jsonl.gz")
        if each["_id"] not in cited and 300 < len(each["text"]) < 1300 and 30 < len(each["title"]) < 160
    ]
    words = [_long_words(each["title"]) for each in abstracts]
    counts = Counter(word for each in words for word in each)

    def likeness(number: int, text: set[str]) -> float:
        return sum(1 / math.log(2 + counts[word]) for word in words[number] & text) / (3 + len(words[number]))

    for number in rng.sample(range(len(abstracts)), 420):
        abstract, group = abstracts[number], f"sci{abstracts[number]['_id']}"
        text, inside = abstract["text"], _long_words(abstract["text"])
        near = sorted(
            (each for each in range(len(abstracts)) if each != number), key=lambda each: -likeness(each, inside)
        )[:4]
        title = _as_sentence(abstract["title"])
        yield Case(title, text, "", 1, "title", "en", group)
        for other in near[1:2] + rng.sample(near, 1):
            yield Case(_as_sentence(abstracts[other]["title"]), text, "", 0, "title of another", "en", group)
        made = list(change(title, text, abstracts[near[0]]["title"], "en", rng))
        changes = [each for each in made if each.kind not in ("unrelated", "own action")]
        rng.shuffle(changes)
        for each in changes[:1]:
            yield Case(each.text, text, "", 0, f"title {each.kind}", "en", group)
        last = rng.choice(re.split(r"(?<=[.!?])\s+", text)[-3:])
        if 40 < len(last) < 260:
            yield Case(last, text, abstract["title"], 1, "verbatim", "en", group)
            made = list(change(last, text, abstracts[near[0]]["title"], "en", rng))
            changes = [each for each in made if each.kind != "own action"]
            rng.shuffle(changes)
            for each in changes[:1]:
                yield Case(each.text, text, abstract["title"], 0, each.kind, "en", group)


def _as_sentence(title: str) -> str:
    return title.rstrip(".") + "."


def _long_words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{4,}", text.lower()))


def _sentences(text: str) -> list[str]:
    ends = r"(?<=[.!?。।])\s*(?=\S)" if re.search("[。।]", text) else r"(?<=[.!?])\s+"
    found = (each.strip() for each in re.split(ends, text))
    return [each for each in found if 25 < len(each) < 260 or (_IDEOGRAPHS.search(each) and 10 < len(each) < 90)]


def _rows(path: Path) -> Iterable[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def _json(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)
