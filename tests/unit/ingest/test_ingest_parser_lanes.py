"""Small files go by large ones."""

import asyncio

import pytest

from services.ingest.adapters.parser_lanes import SMALL_BYTES, ParserLanes

SMALL, LARGE = SMALL_BYTES, SMALL_BYTES + 1


class Parser:
    """Files that hold their place until they are told to be done."""

    def __init__(self, size: int) -> None:
        self.lanes = ParserLanes(size)
        self.parsing: list[str] = []
        self._done: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def arrive(self, name: str, size_bytes: int) -> None:
        self._done[name] = asyncio.Event()

        async def parse() -> None:
            async with self.lanes.hold(size_bytes):
                self.parsing.append(name)
                try:
                    await self._done[name].wait()
                finally:
                    self.parsing.remove(name)

        self.tasks[name] = asyncio.create_task(parse())
        await settle()

    async def finish(self, name: str) -> None:
        self._done[name].set()
        await self.tasks[name]
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_small_file_goes_by_a_large_one_and_the_next_waits_for_it() -> None:
    parser = Parser(1)
    await parser.arrive("book", LARGE)
    await parser.arrive("second book", LARGE)
    await parser.arrive("note", SMALL)
    await parser.arrive("second note", SMALL)
    assert parser.parsing == ["book", "note"]
    await parser.finish("note")
    assert parser.parsing == ["book", "second note"]
    await parser.finish("second note")
    assert parser.parsing == ["book"], "the express place is for small files only"
    await parser.finish("book")
    assert parser.parsing == ["second book"]
    await parser.finish("second book")


async def test_small_files_among_themselves_take_turns_in_one_place() -> None:
    parser = Parser(1)
    for n in range(3):
        await parser.arrive(f"note {n}", SMALL)
    assert parser.parsing == ["note 0"]
    for n in range(3):
        await parser.finish(f"note {n}")


async def test_small_file_that_waited_behind_a_large_one_goes_by_when_that_begins() -> None:
    parser = Parser(1)
    await parser.arrive("note 0", SMALL)
    await parser.arrive("book", LARGE)
    await parser.arrive("note 1", SMALL)
    assert parser.parsing == ["note 0"]
    await parser.finish("note 0")
    assert parser.parsing == ["book", "note 1"]
    await parser.finish("book")
    await parser.finish("note 1")


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
    await parser.finish("next")
    await parser.finish("next note")
