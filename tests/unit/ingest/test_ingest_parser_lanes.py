"""A file that takes long keeps nobody waiting."""

import asyncio

import pytest

from services.ingest.reading.pool.lanes import SMALL_BYTES, ParserLanes, Place

SMALL, LARGE = SMALL_BYTES, SMALL_BYTES + 1


class Parser:
    """Files that hold their place until they are told to be done."""

    def __init__(self, size: int) -> None:
        self.lanes = ParserLanes(size)
        self.parsing: list[str] = []
        self.places: dict[str, Place] = {}
        self._done: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def arrive(self, name: str, size_bytes: int, tenant_id: str = "acme", *, had_turn: bool = False) -> None:
        self._done[name] = asyncio.Event()

        async def parse() -> None:
            async with self.lanes.hold(tenant_id, size_bytes, had_turn=had_turn) as place:
                self.places[name] = place
                self.parsing.append(name)
                try:
                    await self._done[name].wait()
                finally:
                    self.parsing.remove(name)

        self.tasks[name] = asyncio.create_task(parse())
        await settle()

    async def end_turn(self, name: str) -> bool:
        may_stay = self.places[name].end_turn()
        await settle()
        return may_stay

    async def finish(self, *names: str) -> None:
        for name in names:
            self._done[name].set()
            await self.tasks[name]
            await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_small_file_goes_by_a_large_one_and_the_next_waits_for_it() -> None:
    parser = Parser(1)
    await parser.arrive("book", LARGE)
    await parser.arrive("note", SMALL)
    await parser.arrive("second note", SMALL)
    assert parser.parsing == ["book", "note"]
    await parser.finish("note")
    assert parser.parsing == ["book", "second note"]
    await parser.finish("second note", "book")


async def test_large_file_has_a_first_turn_while_a_slow_one_stays() -> None:
    parser = Parser(1)
    await parser.arrive("made to be slow", LARGE)
    await parser.arrive("report", LARGE)
    await parser.arrive("second report", LARGE)
    assert parser.parsing == ["made to be slow", "report"]
    await parser.finish("report")
    assert parser.parsing == ["made to be slow", "second report"]
    await parser.finish("second report", "made to be slow")


async def test_small_file_that_is_slow_after_all_opens_the_place_for_first_turns() -> None:
    parser = Parser(1)
    await parser.arrive("made to be slow", SMALL)
    await parser.arrive("note", SMALL)
    assert parser.parsing == ["made to be slow"]
    assert await parser.end_turn("made to be slow")
    assert parser.parsing == ["made to be slow", "note"]
    await parser.finish("note", "made to be slow")


async def test_file_whose_turn_is_over_leaves_for_the_next_and_comes_again_only_to_stay() -> None:
    parser = Parser(1)
    await parser.arrive("book", LARGE)
    await parser.arrive("second book", LARGE)
    await parser.arrive("note", SMALL)
    assert not await parser.end_turn("second book")
    await parser.finish("second book")
    await parser.arrive("second book again", LARGE, had_turn=True)
    assert parser.parsing == ["book", "note"]
    await parser.finish("note")
    assert parser.parsing == ["book"], "the place for first turns stays free for whoever comes"
    await parser.arrive("another note", SMALL)
    assert parser.parsing == ["book", "another note"]
    await parser.finish("book")
    assert parser.parsing == ["another note", "second book again"]
    await parser.finish("another note", "second book again")


async def test_file_whose_turn_is_over_moves_to_a_place_to_stay_in_where_one_is_free() -> None:
    parser = Parser(1)
    await parser.arrive("book", LARGE)
    await parser.arrive("second book", LARGE)
    await parser.finish("book")
    assert await parser.end_turn("second book")
    await parser.arrive("note", SMALL)
    assert parser.parsing == ["second book", "note"]
    await parser.finish("note", "second book")


async def test_small_files_among_themselves_take_turns_in_one_place() -> None:
    parser = Parser(1)
    for n in range(3):
        await parser.arrive(f"note {n}", SMALL)
    assert parser.parsing == ["note 0"]
    for n in range(3):
        await parser.finish(f"note {n}")


async def test_tenants_take_turns_however_many_files_one_of_them_has() -> None:
    parser = Parser(1)
    order = []
    for n in range(4):
        await parser.arrive(f"acme {n}", SMALL, "acme")
    await parser.arrive("other 0", SMALL, "other")
    await parser.arrive("other 1", SMALL, "other")
    while parser.parsing:
        (name,) = parser.parsing
        order.append(name)
        await parser.finish(name)
    assert order == ["acme 0", "acme 1", "other 0", "acme 2", "other 1", "acme 3"]


async def test_note_waits_for_one_large_file_and_not_for_all_that_came_before() -> None:
    parser = Parser(1)
    for n in range(4):
        await parser.arrive(f"book {n}", LARGE)
    await parser.arrive("note", SMALL)
    assert parser.parsing == ["book 0", "book 1"]
    assert not await parser.end_turn("book 1")
    await parser.finish("book 1")
    assert "note" not in parser.parsing
    await parser.finish("book 2")
    assert parser.parsing == ["book 0", "note"]
    await parser.finish("note", "book 3", "book 0")


async def test_who_stops_waiting_or_parsing_leaves_the_place_to_others() -> None:
    parser = Parser(1)
    await parser.arrive("book", LARGE)
    await parser.arrive("note", SMALL)
    await parser.arrive("waiting", LARGE)
    for name in ("waiting", "note", "book"):
        parser.tasks[name].cancel()
        with pytest.raises(asyncio.CancelledError):
            await parser.tasks[name]
    await parser.arrive("next", LARGE)
    await parser.arrive("next note", SMALL)
    assert parser.parsing == ["next", "next note"]
    await parser.finish("next", "next note")


async def test_place_that_was_given_in_the_moment_of_a_cancellation_is_given_on() -> None:
    parser = Parser(1)
    await parser.arrive("note", SMALL)
    await parser.arrive("second", SMALL)
    await parser.arrive("third", SMALL)
    parser._done["note"].set()
    while not parser.lanes._staying or next(iter(parser.lanes._staying)) is parser.places["note"]:
        await asyncio.sleep(0)
    parser.tasks["second"].cancel()
    with pytest.raises(asyncio.CancelledError):
        await parser.tasks["second"]
    await settle()
    assert parser.parsing == ["third"]
    await parser.finish("third")
