"""The store of token vectors: its bound, what it survives, and who may use it at once."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from structlog.testing import capture_logs

from services.reranker.adapters.sqlite_store import FILE_NAME, SqlitePassageStore
from services.reranker.errors import PassageStoreUnavailable
from services.reranker.models import TextVectors, VectorSpace
from services.reranker.reranking.passage_cache import text_key

SPACE = VectorSpace("model/format", 4, 8)
MAX_BYTES = 2_000_000
RNG = np.random.default_rng(11)


def vectors(tokens: int = 2000) -> TextVectors:
    pooled = RNG.normal(size=SPACE.dimension).astype(np.float32)
    return TextVectors(RNG.integers(0, 255, (tokens, SPACE.token_bytes)).astype(np.uint8), pooled)


def same(left: TextVectors, right: TextVectors) -> bool:
    return np.array_equal(left.tokens, right.tokens) and np.array_equal(left.pooled, right.pooled)


def open_store(folder: Path, max_bytes: int = MAX_BYTES, space: VectorSpace = SPACE) -> SqlitePassageStore:
    return SqlitePassageStore(folder / "reranker", max_bytes, space)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlitePassageStore]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


def size_bytes(folder: Path) -> int:
    return (folder / "reranker" / FILE_NAME).stat().st_size


def test_entries_outlive_the_process_and_only_they_are_found(tmp_path: Path, store: SqlitePassageStore) -> None:
    entries = {text_key(f"text {n}"): vectors(n + 1) for n in range(300)}
    store.put(entries)
    store.close()
    again = open_store(tmp_path)
    found = again.get([*entries, text_key("unknown")])
    again.close()
    assert found.keys() == entries.keys()
    assert all(same(found[key], entries[key]) for key in entries)


def test_oldest_make_room_and_the_file_stays_below_its_bound(tmp_path: Path, store: SqlitePassageStore) -> None:
    keys = [text_key(f"text {n}") for n in range(400)]
    for start in range(0, len(keys), 25):
        store.put({key: vectors() for key in keys[start : start + 25]})
    found = store.get(keys)
    store.close()
    assert list(found.keys() & set(keys[-25:])) != []
    assert sorted(found) == sorted(keys[-len(found) :]), "what is left is the newest"
    assert len(found) > 50
    assert size_bytes(tmp_path) <= MAX_BYTES


def test_text_that_comes_again_is_new_again(store: SqlitePassageStore) -> None:
    first = text_key("first")
    store.put({first: vectors()})
    store.put({text_key(f"text {n}"): vectors() for n in range(80)})
    store.put({first: vectors()})
    store.put({text_key(f"later {n}"): vectors() for n in range(60)})
    assert first in store.get([first])
    assert text_key("text 0") not in store.get([text_key("text 0")])


def test_entries_of_another_model_are_not_found(tmp_path: Path, store: SqlitePassageStore) -> None:
    store.put({text_key("text"): vectors()})
    other = open_store(tmp_path, space=VectorSpace("other/format", 4, 8))
    assert other.get([text_key("text")]) == {}
    other.close()


@pytest.mark.parametrize("damage", ["garbage", "cut", "torn", "another version"])
def test_damaged_file_is_made_anew_and_said_so(tmp_path: Path, damage: str) -> None:
    store = open_store(tmp_path)
    keys = [text_key(f"text {n}") for n in range(60)]
    store.put({key: vectors() for key in keys})
    store.close()
    path = tmp_path / "reranker" / FILE_NAME
    content = path.read_bytes()
    if damage == "garbage":
        path.write_bytes(b"no database at all " * 1000)
    elif damage == "cut":
        path.write_bytes(content[: len(content) // 3])
    elif damage == "torn":
        path.write_bytes(content[:4096] + bytes(RNG.integers(0, 255, len(content) - 4096, dtype=np.uint8)))
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA user_version=99")
        connection.close()
    with capture_logs() as logs:
        again = open_store(tmp_path)
    again.put({keys[0]: vectors()})
    assert again.get(keys).keys() == {keys[0]}
    again.close()
    assert [log["event"] for log in logs] == ["passage_store_made_anew"]


def test_file_that_is_damaged_while_it_is_open_is_made_anew_with_the_next_entries(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    keys = [text_key(f"text {n}") for n in range(60)]
    store.put({key: vectors() for key in keys})
    store.close()
    path = tmp_path / "reranker" / FILE_NAME
    content = bytearray(path.read_bytes())
    store = open_store(tmp_path)
    content[8 * 4096 :] = bytes(RNG.integers(0, 255, len(content) - 8 * 4096, dtype=np.uint8))
    path.write_bytes(content)
    with capture_logs() as logs:
        store.get(keys)
        store.put({keys[0]: vectors()})
        store.put({keys[1]: vectors()})
    assert keys[1] in store.get(keys[:2])
    store.close()
    assert "passage_store_made_anew" in [log["event"] for log in logs]


def test_place_that_cannot_be_written_is_a_warning_and_an_empty_store(tmp_path: Path) -> None:
    (tmp_path / "reranker").write_text("a file where the folder should be")
    with capture_logs() as logs:
        store = open_store(tmp_path)
        store.put({text_key("text"): vectors()})
        assert store.get([text_key("text")]) == {}
    store.close()
    assert [log["event"] for log in logs] == ["passage_store_failed"]


def test_lowered_bound_makes_the_file_anew(tmp_path: Path, store: SqlitePassageStore) -> None:
    store.put({text_key(f"text {n}"): vectors() for n in range(80)})
    store.close()
    lower = open_store(tmp_path, max_bytes=300_000)
    lower.put({text_key(f"text {n}"): vectors() for n in range(8)})
    lower.close()
    assert size_bytes(tmp_path) <= 300_000


def test_entry_larger_than_the_bound_is_left_out(tmp_path: Path) -> None:
    store = open_store(tmp_path, max_bytes=100_000)
    store.put({text_key("long"): vectors(20_000)})
    store.put({text_key("short"): vectors(10)})
    assert store.get([text_key("long"), text_key("short")]).keys() == {text_key("short")}
    store.close()


def test_readers_and_writers_at_once_lose_nothing(store: SqlitePassageStore) -> None:
    entries = {text_key(f"text {n}"): vectors(20) for n in range(320)}
    keys = list(entries)

    def write(start: int) -> None:
        store.put({key: entries[key] for key in keys[start : start + 20]})

    def read(_: int) -> bool:
        return all(same(found, entries[key]) for key, found in store.get(keys).items())

    with ThreadPoolExecutor(4) as pool:
        written = [pool.submit(write, start) for start in range(0, 320, 20)]
        right = list(pool.map(read, range(20)))
        for each in written:
            each.result()
    assert all(right)
    assert store.get(keys).keys() == entries.keys()


def test_two_servers_may_share_a_file(tmp_path: Path, store: SqlitePassageStore) -> None:
    other = open_store(tmp_path)
    store.put({text_key("one"): vectors()})
    other.put({text_key("two"): vectors()})
    both = [text_key("one"), text_key("two")]
    assert store.get(both).keys() == other.get(both).keys() == set(both)
    other.close()


def test_forgotten_entries_leave_nothing_on_the_disk(tmp_path: Path, store: SqlitePassageStore) -> None:
    gone, stays = text_key("gone"), text_key("stays")
    entries = {gone: vectors(), stays: vectors()}
    store.put(entries)
    store.forget([gone, text_key("never there")])
    assert store.get([gone, stays]).keys() == {stays}
    content = b"".join(path.read_bytes() for path in (tmp_path / "reranker").iterdir())
    assert entries[stays].tokens.tobytes()[:500] in content
    assert entries[gone].tokens.tobytes()[:500] not in content
    assert gone not in content


def test_forgetting_reaches_the_entries_of_every_model(tmp_path: Path, store: SqlitePassageStore) -> None:
    gone, stays = text_key("gone"), text_key("stays")
    others = [open_store(tmp_path, space=VectorSpace(f"other {n}/format", 4, 8)) for n in range(3)]
    for each in (store, *others):
        each.put({gone: vectors(), stays: vectors()})
    store.forget([gone])
    assert [each.get([gone, stays]).keys() for each in (store, *others)] == [{stays}] * 4
    for each in others:
        each.close()


def test_disk_that_does_not_let_entries_be_removed_is_an_error(tmp_path: Path, store: SqlitePassageStore) -> None:
    store.put({text_key("gone"): vectors()})
    with sqlite3.connect(tmp_path / "reranker" / FILE_NAME, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")  # another process writes, and does not end
        with pytest.raises(PassageStoreUnavailable, match="Try again"):
            store.forget([text_key("gone")])
        other.execute("ROLLBACK")
    other.close()
    store.forget([text_key("gone")])
    assert store.get([text_key("gone")]) == {}


def test_nothing_to_forget_where_nothing_could_be_kept(tmp_path: Path) -> None:
    (tmp_path / "reranker").write_text("a file where the folder should be")
    store = open_store(tmp_path)
    store.forget([text_key("gone")])
    store.close()


class Days:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.day = 20_000

    def __call__(self) -> float:
        return self.day * 86_400.0


def test_what_nobody_used_for_long_is_collected_and_what_is_used_stays(tmp_path: Path) -> None:
    clock = Days()

    def opened() -> SqlitePassageStore:
        return SqlitePassageStore(tmp_path, MAX_BYTES, SPACE, max_idle_days=30, clock=clock)

    store = opened()
    unused = {text_key(f"unused {n}"): vectors(5) for n in range(300)}
    used, written_again = text_key("used"), text_key("written again")
    store.put({**unused, used: vectors(5), written_again: vectors(5)})
    clock.day += 20
    store.get([used])
    store.put({written_again: vectors(5)})
    store.close()  # the use is noted, too
    store = opened()
    clock.day += 10
    assert store.collect() == 0
    clock.day += 1
    collected = 0
    while count := store.collect():
        collected += count
    assert collected == len(unused)
    assert store.get([*unused, used, written_again]).keys() == {used, written_again}
    clock.day += 31
    assert store.collect() == 0, "reading it was using it, whether or not anything was written since"
    store.close()
