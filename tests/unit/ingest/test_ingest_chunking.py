"""Chunks cover the text, fit the window and are cut where a reader would cut."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.adapters.tokenizer import ModelTokenizer, open_tokenizer
from services.ingest.reading.chunks.chunking import chunk, chunker_for
from services.ingest.reading.chunks.tokens import EstimatedTokens
from services.ingest.reading.cleaning import clean
from services.ingest.reading.models import Block, BlockKind, Chunk, CleanDocument, ParsedDocument
from services.reranker.adapters.e5_file import E5File
from services.reranker.adapters.sentencepiece import unigram_model
from services.reranker.model_files import E5_SMALL_4BIT, read_verified

WINDOW = 64
TOKENS = EstimatedTokens()


def document(*blocks: Block, title: str = "Title", pages: int = 0) -> CleanDocument:
    return clean(ParsedDocument(title, blocks, page_statuses=("text",) * pages))


def chunks_of(text: CleanDocument, window: int = WINDOW) -> list[Chunk]:
    return chunk(text, TOKENS, window_tokens=window, overlap_tokens=16)


def assert_sound(source: CleanDocument, chunks: list[Chunk], window: int = WINDOW) -> None:
    covered = bytearray(len(source.text))
    for i, each in enumerate(chunks):
        assert each.ordinal == i
        assert each.text.endswith(source.text[each.start : each.end])
        assert len(each.text) == each.end - each.start or is_rest_of_row(source, each)
        assert each.text.strip() == each.text != ""
        assert each.embedded_text.endswith(each.text)
        assert each.token_count == TOKENS.counts([each.embedded_text])[0] + TOKENS.special_tokens
        assert each.token_count <= window
        covered[each.start : each.end] = b"\1" * (each.end - each.start)
    assert all(covered[i] or character.isspace() for i, character in enumerate(source.text))
    assert [each.start for each in chunks] == sorted({each.start for each in chunks})


def is_rest_of_row(source: CleanDocument, part: Chunk) -> bool:
    section = next(each for each in source.sections if each.start < part.start < each.end)
    return section.kind in (BlockKind.ROW, BlockKind.TABLE) and part.text.startswith(section.label)


_words = st.text(alphabet=st.characters(codec="utf-8"), max_size=80) | st.sampled_from(
    ["A sentence. Another one! ", "x" * 500, "第一句。第二句。" * 10, "a b c d e f g " * 20, "line\nline\n" * 20]
)
_blocks = st.builds(
    Block,
    st.sampled_from(list(BlockKind)),
    _words,
    level=st.integers(1, 6),
    label=st.sampled_from(["", "name: Ann"]),
)


@given(st.lists(_blocks, max_size=12), st.sampled_from(["", "Title", "long title " * 30]), st.integers(12, 80))
def test_no_text_is_lost_and_no_chunk_exceeds_the_window(blocks: list[Block], title: str, window: int) -> None:
    source = document(*blocks, title=title)
    assert_sound(source, chunks_of(source, window), window)


def test_chunking_is_deterministic() -> None:
    source = document(*(Block(BlockKind.TEXT, f"Sentence {n}. It is here.") for n in range(50)))
    assert chunks_of(source) == chunks_of(source)


def test_chunks_are_cut_between_sentences_and_overlap_by_whole_ones() -> None:
    sentences = [f"Sentence number {n} tells a story." for n in range(40)]
    chunks = chunks_of(document(Block(BlockKind.TEXT, " ".join(sentences))))
    assert len(chunks) > 3
    assert all(each.text.startswith("Sentence number") and each.text.endswith("story.") for each in chunks)
    assert all(after.start < before.end for before, after in pairwise(chunks))


def test_sections_are_not_mixed_and_carry_their_heading_path() -> None:
    blocks = []
    for part in ("Alpha", "Beta", "Gamma"):
        blocks.append(Block(BlockKind.HEADING, part, level=1))
        blocks.append(Block(BlockKind.HEADING, f"{part} details", level=2))
        blocks.append(Block(BlockKind.TEXT, " ".join(f"{part} fact {n} is true." for n in range(20))))
    source = document(*blocks)
    chunks = chunks_of(source)
    assert chunker_for(source, has_pages=False) == "headings"
    for each in chunks:
        part = each.heading_path[0]
        assert each.heading_path[:2] == (part, f"{part} details")
        assert not any(other in each.text for other in {"Alpha", "Beta", "Gamma"} - {part})
    follower = next(each for each in chunks if not each.text.startswith("Alpha\n"))
    assert follower.embedded_text.startswith("Title\nAlpha > Alpha details\n\n")
    assert "Alpha details" not in follower.text


def test_small_sections_share_a_chunk_under_their_common_heading() -> None:
    blocks = [Block(BlockKind.HEADING, "Rules", level=1)]
    for n in range(3):
        blocks += [Block(BlockKind.HEADING, f"Rule {n}", level=2), Block(BlockKind.TEXT, "Be kind.")]
    (only,) = chunks_of(document(*blocks))
    assert only.heading_path == ("Rules",)


def test_sheets_share_no_chunk_and_are_named_in_its_path() -> None:
    blocks = [
        block
        for name in ("Cups", "Cups since 67")
        for block in (
            Block(BlockKind.HEADING, name, 1, begins_part=True),
            Block(BlockKind.ROW, f"Team: Blues; {name}: 1"),
        )
    ]
    chunks = chunks_of(document(*blocks))
    assert [(chunk.heading_path, chunk.text) for chunk in chunks] == [
        (("Cups",), "Cups\n\nTeam: Blues; Cups: 1"),
        (("Cups since 67",), "Cups since 67\n\nTeam: Blues; Cups since 67: 1"),
    ]


def test_code_that_fits_stays_whole() -> None:
    code = "def f(x):\n    return x + 1\n\nprint(f(2))"
    prose = Block(BlockKind.TEXT, "Words and words. " * 30)
    chunks = chunks_of(document(prose, Block(BlockKind.CODE, code), prose))
    assert any(code in each.text for each in chunks)


def test_rows_stay_whole_and_a_long_row_repeats_its_label() -> None:
    rows = [
        Block(BlockKind.ROW, f"name: person {n}; city: Bonn; year: {1900 + n}", label=f"name: person {n}")
        for n in range(30)
    ]
    long = Block(BlockKind.ROW, "; ".join(f"column {n}: value {n}" for n in range(60)), label="name: Long")
    source = document(*rows, long)
    chunks = chunks_of(source)
    assert chunker_for(source, has_pages=False) == "rows"
    whole = [each for each in chunks if "person" in each.text]
    assert all(line.startswith("name: person") for each in whole[:-1] for line in each.text.split("\n"))
    rest = [each for each in chunks if "column 9:" in each.text or "column 59:" in each.text]
    assert len(rest) > 1
    assert all(each.text.startswith("name: Long; column ") for each in rest)
    assert "column 59: value 59" in rest[-1].text
    assert all(each.text.removeprefix("name: Long; ") == source.text[each.start : each.end] for each in rest)


def test_the_rest_of_a_long_cell_repeats_the_names_of_its_row_and_of_its_column() -> None:
    story = " ".join(f"word{n}" for n in range(150))
    row = Block(BlockKind.ROW, f"site: Tarsk; status: open; notes: {story}; year: 1962", label="site: Tarsk")
    first, *rest = chunks_of(document(row))
    assert first.text.startswith("site: Tarsk; status: open")
    assert len(rest) > 1
    assert rest[0].text.startswith("site: Tarsk; notes: word0")
    assert all(each.text.startswith("site: Tarsk; notes: … word") for each in rest[1:])
    assert rest[-1].text.endswith("word149; year: 1962")


def test_a_chunk_that_begins_within_a_section_ends_with_it() -> None:
    """Else nothing in it says that what it begins with is of another section than what follows."""
    blocks = []
    for ship, litres in (("Halcyon", 2750), ("Petrel", 900)):
        blocks.append(Block(BlockKind.HEADING, ship, level=2))
        checks = " ".join(f"The check number {n} found no faults." for n in range(12))
        blocks.append(Block(BlockKind.TEXT, f"{checks} Its tank holds {litres} litres."))
        blocks.append(Block(BlockKind.HEADING, f"{ship} crew", level=3))
        blocks.append(Block(BlockKind.TEXT, "Two people."))
    chunks = chunks_of(document(Block(BlockKind.HEADING, "Fleet", level=1), *blocks))
    for ship, other in (("Halcyon", "Petrel"), ("Petrel", "Halcyon")):
        of_ship = [each for each in chunks if "litres" in each.text and ship in (*each.heading_path, each.text)]
        assert of_ship
        assert all(other not in " ".join((*each.heading_path, each.text)) for each in of_ship)


def test_chunk_knows_its_first_page() -> None:
    source = document(*(Block(BlockKind.TEXT, f"Page {n} speaks. " * 12, page=n) for n in (1, 2, 3)), pages=3)
    assert chunker_for(source, has_pages=True) == "pages"
    chunks = chunks_of(source)
    assert_sound(source, chunks)
    for each in chunks:
        assert f"Page {each.page} speaks." in each.text


def test_chunk_stays_on_its_page_however_small_the_pages_are() -> None:
    said = ("Passengers were many.", "A ferry lay in dock.", "Nobody complained.")
    source = document(*(Block(BlockKind.TEXT, text, page=n) for n, text in enumerate(said, 1)), pages=3)
    assert [(each.page, each.text) for each in chunks_of(source)] == list(enumerate(said, 1))


def test_chunk_fills_what_the_window_allows_and_no_more_than_the_target() -> None:
    source = document(Block(BlockKind.TEXT, "One two three four five six. " * 400))
    wide = chunks_of(source, 4096)
    assert max(each.token_count for each in wide) <= 512 + TOKENS.special_tokens
    assert sum(each.token_count for each in wide[:-1]) / len(wide[:-1]) > 0.7 * 512


def test_model_tokenizer_counts_what_the_model_sees(models_dir: Path) -> None:
    path = next(models_dir.rglob("tokenizer.json"), None)
    if path is None:
        pytest.skip("no tokenizer: run `make setup`")
    tokens = ModelTokenizer(path)
    assert tokens.special_tokens == 2
    assert tokens.counts(["hello world", ""]) == [2, 0]
    assert tokens.counts(["word " * 1000]) == [1000]
    source = document(
        Block(BlockKind.TEXT, "Straße 日本語 🎉 don't e.g. 3.14 " * 200), Block(BlockKind.CODE, "x" * 5000)
    )
    for each in chunk(source, tokens, window_tokens=256):
        assert each.token_count <= 256


def test_sentencepiece_tokenizer_counts_and_places_what_the_model_sees(models_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.model"
    path.write_bytes(unigram_model(E5File(read_verified(models_dir, E5_SMALL_4BIT.weights)).pieces))
    tokens = open_tokenizer(path)
    assert tokens.special_tokens == 2
    assert tokens.additive
    assert tokens.counts(["hello world", ""]) == [3, 0]
    text = "Straße ไทยภาษา 🎉 ok"
    offsets = tokens.offsets(text)
    assert len(offsets) == tokens.counts([text])[0]
    assert "".join(text[start:end] for start, end in offsets) == text
    source = document(Block(BlockKind.TEXT, "Straße 日本語ไทยภาษา 🎉 don't e.g. 3.14 " * 200))
    for each in chunk(source, tokens, window_tokens=256):
        assert each.token_count <= 256
