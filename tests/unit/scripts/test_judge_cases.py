"""The claims that the judge of claims is fitted on."""

import gzip
import json
from pathlib import Path

import pytest

from evals.claims.sets import is_fitted_on
from evals.claims.written import read_written
from scripts.judge.captions import general, passive, trimmed
from scripts.judge.cases import WRITTEN, make_cases

_TEXTS = [
    f"Ada{number} met Jules{number} in Lindow on {number} May 1949. They built a mill there." for number in range(12)
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The public files, with a few rows each."""
    labels = ["entailment", "contradiction"] * 3
    texts = [f"A man plays with {number} red balls in the park." for number in range(len(labels))]
    pairs = [
        {"sentence1": text, "sentence2": "A man plays.", "category": "synonyms", "gold_label": label}
        for text, label in zip(texts, labels, strict=True)
    ]
    asked = [
        {"knowledge": text, "question": "Who built it?", "right_answer": "Ada", "hallucinated_answer": "Bo"}
        for text in _TEXTS
    ]
    said = [{"chatgpt_response": f"{text} {text} {text}"} for text in _TEXTS]
    files = {
        "nli_small/breaking_nli": pairs,
        "halluc_halueval/qa_multi-turn_data": asked,
        "halluc_halueval/qa_one-turn_data": asked,
        "halluc_halueval/general_data": said,
    }
    for name, rows in files.items():
        path = tmp_path / f"{name}.jsonl.gz"
        path.parent.mkdir(exist_ok=True)
        with gzip.open(path, "wt", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    return tmp_path


def test_every_written_passage_has_true_and_false_claims_of_its_own() -> None:
    passages = read_written(WRITTEN)
    assert len(passages) > 80
    assert {each.language for each in passages} >= {"en", "de", "es", "ru", "he", "fr"}
    for passage in passages:
        assert passage.text
        assert {claim.is_true for claim in passage.claims} == {True, False}, passage.heading
        assert len({claim.text for claim in passage.claims}) == len(passage.claims), passage.heading


def test_written_line_below_no_passage_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("It opens.\n", "utf-8")
    with pytest.raises(ValueError, match=r"a\.txt, line 1"):
        read_written(tmp_path)


def test_written_claim_may_have_another_language_than_its_passage(tmp_path: Path) -> None:
    text = "@ de | Buch > Teil\nEs öffnet.\n+ paraphrase: Es geht auf.\n- cross_language [en]: It is closed.\n"
    (tmp_path / "a.txt").write_text(text, "utf-8")
    (passage,) = read_written(tmp_path)
    assert (passage.heading, passage.text) == ("Buch Teil", "Es öffnet.")
    assert [(claim.is_true, claim.language) for claim in passage.claims] == [(True, "de"), (False, "en")]


def test_cases_are_always_the_same_and_leave_out_what_judges_are_measured_on(folder: Path) -> None:
    cases = make_cases(folder)
    assert cases == make_cases(folder)
    of_halueval = {case.passage for case in cases if case.kind == "halueval"}
    assert of_halueval == {text for text in _TEXTS if is_fitted_on(text)}


def test_claim_of_another_passage_is_false(folder: Path) -> None:
    others = [case for case in make_cases(folder) if case.kind in ("of another", "beside")]
    assert others
    assert not any(case.is_true or case.claim in case.passage for case in others)


def test_descriptions_become_shorter_and_more_general() -> None:
    assert general("A young girl is holding a red kite.") == "A child is holding a kite."
    assert trimmed("A girl is holding a kite on the beach.") == "A girl is holding a kite."
    assert passive("A girl is holding a kite on the beach.") == "A kite is being held by a girl."
    assert trimmed("A girl sleeps.") is None
