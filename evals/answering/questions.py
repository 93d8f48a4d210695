"""Questions whose right answers are known: files of this repository (one JSON object a line), and SQuAD 2.0."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evals.datasets.text_files import read_json
from evals.errors import CollectionUnusable

ADVERSARIAL = "adversarial"


@dataclass(frozen=True)
class Asked:
    """A question and what is a right answer to it."""

    question_id: str
    question: str
    kind: str
    file: str
    """Name of the document that holds the answer; empty for none."""
    expected: Sequence[Sequence[str]]
    """Of each group one string must stand in the answer. None at all: the documents do not say."""
    wrong: Sequence[str] = ()
    """Strings that must not stand in the answer: another year, a part instead of the total."""
    before: Sequence[str] = ()
    """Questions of the same thread before this one, which leans on them."""

    @property
    def is_answerable(self) -> bool:
        return bool(self.expected)


@dataclass(frozen=True)
class QuestionSet:
    """Questions over documents."""

    name: str
    files: Mapping[str, Path]
    """Name of a document → where it lies."""
    texts: Mapping[str, str]
    """Name of a document → its text, for those that are no files."""
    questions: Sequence[Asked]


def load_questions(name: str, path: Path, files: Mapping[str, Path]) -> QuestionSet:
    """A set of this repository. Raises CollectionUnusable where a document is missing."""
    try:
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
        questions = [
            Asked(
                row["id"],
                row["question"],
                row["kind"],
                row["file"],
                row["expected"],
                row.get("wrong", ()),
                row.get("before", ()),
            )
            for row in rows
        ]
    except (OSError, KeyError, json.JSONDecodeError) as error:
        raise CollectionUnusable(f"{path} is no set of questions: {error!r}") from error
    missing = sorted({each.file for each in questions if each.file} - files.keys())
    if missing:
        raise CollectionUnusable(f"{path.name} asks about documents that are not there: {', '.join(missing[:5])}")
    return QuestionSet(name, files, {}, questions)


def load_squad_half(path: Path, count: int, seed: int = 1) -> QuestionSet:
    """Of the articles in order of their titles every second one, from the second on: the half that nothing was fitted on; at most
    `count` answerable and `count` unanswerable questions of it. The documents are the paragraphs of all articles."""
    articles = sorted(read_json(path)["data"], key=lambda article: str(article["title"]))
    texts: dict[str, str] = {}
    by_kind: dict[bool, list[Asked]] = {True: [], False: []}
    for index, article in enumerate(articles):
        title = str(article["title"]).replace("_", " ")
        for number, paragraph in enumerate(article["paragraphs"]):
            name = f"{title} {number:03d}.md".replace("/", "-")
            texts[name] = f"# {title}\n\n{paragraph['context'].strip()}\n"
            for row in paragraph["qas"] if index % 2 else ():
                spans = [] if row.get("is_impossible") else sorted({each["text"] for each in row["answers"]})
                kind = "answerable" if spans else ADVERSARIAL
                asked = Asked(
                    str(row["id"]), row["question"].strip(), kind, name if spans else "", [spans] if spans else []
                )
                by_kind[bool(spans)].append(asked)
    chosen = [random.Random(seed).sample(each, min(count, len(each))) for each in by_kind.values()]
    return QuestionSet(
        "squad2, the half that nothing was fitted on", {}, texts, [each for part in chosen for each in part]
    )
