"""Chunks that say the same, and which of them is shown."""

from __future__ import annotations

from kit.ranking.duplicates import Duplicate, Duplicates
from services.retriever.indexes.chunk_encoding import text_hash
from services.retriever.models import Chunk, RevisionKey
from tests.unit.retriever.fakes import make_chunk

KEY = RevisionKey("local", "d1", "r1")
LONG = (
    "The notice period during probation is two weeks, counted from the day on which the letter arrives at the other side, "
    "unless the contract says otherwise in writing"
)


def _removed(*texts: str | tuple[str, dict[str, str]], depth: int = 10) -> tuple[list[str], list[Duplicate]]:
    """Kept ids and duplicates of texts ranked as given; chunk n is "n"."""
    chunks: dict[str, Chunk] = {}
    for n, each in enumerate(texts):
        text, metadata = (each, {}) if isinstance(each, str) else each
        chunks[str(n)] = make_chunk(text, n, key=KEY, metadata=metadata)
    ranked = {chunk_id: 1.0 - n / 10 for n, chunk_id in enumerate(chunks)}
    duplicates = Duplicates(lambda chunk_id: text_hash(chunks[chunk_id].text), chunks.__getitem__)
    kept, removed = duplicates.remove(ranked, depth)
    assert list(kept.values()) == sorted(kept.values(), reverse=True)
    return list(kept), removed


def test_the_same_words_are_shown_once() -> None:
    assert _removed("Solar panels!", "wind", "solar  PANELS") == (["0", "1"], [Duplicate("2", "0", "duplicate")])


def test_a_word_more_in_a_long_text_is_nearly_the_same() -> None:
    kept, removed = _removed(LONG, "wind", LONG + " somewhere")
    assert kept == ["0", "1"]
    assert removed == [Duplicate("2", "0", "near_duplicate")]


def test_other_numbers_are_other_facts() -> None:
    assert _removed(LONG + " since 2022", LONG + " since 2023")[1] == []


def test_other_names_are_other_facts() -> None:
    assert _removed(f"Ann Smith agrees: {LONG}", f"Bo Jones agrees: {LONG}")[1] == []


def test_short_texts_that_differ_in_a_word_are_both_shown() -> None:
    assert _removed("Ann leads the sales team", "Bo leads the sales team", "a", "b")[1] == []


def test_near_duplicates_are_looked_for_among_the_best_only() -> None:
    assert _removed("wind", LONG, LONG + " somewhere", depth=2)[1] == []


def test_the_original_stands_at_the_place_of_its_forward() -> None:
    kept, removed = _removed((LONG, {"forwarded_from": "Ann"}), "wind", LONG)
    assert kept == ["2", "1"]
    assert removed == [Duplicate("0", "2", "duplicate")]


def test_a_forward_that_says_where_it_comes_from_gives_way_to_its_original() -> None:
    text = "We meet on Monday at noon in the large room"
    kept, removed = _removed((f"Forwarded from Ann of the news 24 channel:\n{text}", {"forward_of": "news/7"}), text)
    assert kept == ["1"]
    assert removed == [Duplicate("0", "1", "near_duplicate")]


def test_among_forwards_the_best_is_shown() -> None:
    assert _removed((LONG, {"forwarded_from": "Ann"}), (LONG, {"forwarded_from": "Bo"}))[0] == ["0"]
