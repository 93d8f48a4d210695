"""The page says of each parameter whether it is honoured, refused or ignored. Each word is tried; one without a case fails."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from services.gateway.models import Json
from tests.service.gateway.conftest import World
from tests.service.gateway.openai_cases import CHAT, RESPONSES, Case, Column, ignored

PAGE = Path(__file__).parents[3] / "docs" / "openai.md"
WORDS = ("honoured", "refused", "ignored")
COLUMNS = (CHAT, RESPONSES)


def rows(title: str = "Parameters") -> Iterator[tuple[str, list[str]]]:
    """Each parameter of the table below a title with what is said of it, a column each."""
    section = PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    for line in re.findall(r"^\| (`.*) \|$", section, re.MULTILINE):
        names, *cells = re.split(r" \| ", line)
        for number, cell in enumerate(cells):
            if cell.startswith("the same"):
                cells[number] = cells[number - 1] + cell
        for name in re.findall(r"`([^`]+)`", names):
            yield name, cells


def promised(name: str, cell: str, column: Column) -> list[Case]:
    """The cases of a cell. Fails where a word has none, and where there is one whose word is missing."""
    cases = column.cases.get(name, [])
    words = {word for word in WORDS if word in cell}
    if words == {"ignored"} and not cases:
        return [ignored(**nested(name))]
    assert {each.word for each in cases} == words, f"`{name}` of {column.path} is said to be: {cell}"
    return cases


def nested(name: str) -> Json:
    """A body with the member."""
    outer, _, inner = name.partition(".")
    return {outer: {inner: True} if inner else True}


TABLE = list(rows())


async def becomes(client: httpx.AsyncClient, world: World, name: str, column: Column, case: Case) -> str:
    """What is wrong with what becomes of the request; empty: nothing."""
    world.orchestrator.requests.clear()
    answer = await client.post(column.path, json={**column.minimal, **case.given})
    if case.word == "refused":
        is_refused = answer.status_code in (400, 404) and case.says in answer.json()["error"]["message"]
        return "" if is_refused and not world.orchestrator.requests else f"not refused: {answer.text}"
    if answer.status_code != 200:
        return answer.text
    header = answer.headers.get("x-groundwork-ignored", "").split(", ")
    is_named = bool({name, name.partition(".")[0], case.header or name} & set(header))
    if is_named != (case.word == "ignored"):
        return f"the header names {header}"
    (run,) = world.orchestrator.requests
    return "" if case.shown(run, answer) else f"{run}: {answer.text}"


@pytest.mark.parametrize("number", range(len(COLUMNS)), ids=["chat completions", "responses"])
async def test_parameters_do_what_the_table_says(client: httpx.AsyncClient, world: World, number: int) -> None:
    column = COLUMNS[number]
    for name, cells in TABLE:
        for case in promised(name, cells[number], column):
            complaint = await becomes(client, world, name, column, case)
            assert not complaint, f"`{name}` is not {case.word} with {case.given}: {complaint}"


def test_every_case_is_of_a_parameter_in_the_table() -> None:
    names = {name for name, _ in TABLE}
    assert {name for column in COLUMNS for name in column.cases} <= names


@pytest.mark.parametrize(
    "parameters", [CompletionCreateParamsBase, ResponseCreateParamsBase], ids=["chat completions", "responses"]
)
def test_table_has_every_parameter_that_the_official_client_knows(parameters: type) -> None:
    described = {name.partition(".")[0] for name, _ in TABLE}
    assert set(parameters.__annotations__) <= described
