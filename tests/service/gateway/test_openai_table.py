"""The page says of each parameter whether it is honoured, refused or ignored. Each word is tried; one without a case fails."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest
from openai.types import (
    EmbeddingCreateParams,
    FileCreateParams,
    FileListParams,
    VectorStoreCreateParams,
    VectorStoreListParams,
    VectorStoreSearchParams,
    VectorStoreUpdateParams,
    vector_stores,
)
from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses import InputItemListParams
from openai.types.responses.response_create_params import ResponseCreateParamsBase
from openai.types.responses.response_retrieve_params import ResponseRetrieveParamsBase, ResponseRetrieveParamsStreaming
from typing_extensions import get_type_hints, is_typeddict

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


RESPONSE_PAGES = PAGE.read_text().split("\n## Responses that go on\n")[1].split("\n## ")[0]
STORES = "Files and vector stores"
OF_SECTIONS = [
    (CompletionCreateParamsBase, "Parameters"),
    (ResponseCreateParamsBase, "Parameters"),
    (EmbeddingCreateParams, "Embeddings"),
    *((each, STORES) for each in (FileCreateParams, FileListParams, VectorStoreCreateParams, VectorStoreUpdateParams)),
    *((each, STORES) for each in (VectorStoreListParams, VectorStoreSearchParams, vector_stores.FileCreateParams)),
    *((each, STORES) for each in (vector_stores.FileUpdateParams, vector_stores.FileListParams)),
    *((each, STORES) for each in (vector_stores.FileBatchCreateParams, vector_stores.FileBatchListFilesParams)),
]
"""Parameters of the official client's calls, and the section that describes them. Calls without any: those of models."""
IN_PATHS = {"vector_store_id"}


def members_of(hint: Any) -> Iterator[str]:
    """Names of the members that a parameter may have."""
    if is_typeddict(hint):
        yield from get_type_hints(hint)
    for each in get_args(hint):
        yield from members_of(each)


@pytest.mark.parametrize(("parameters", "section"), OF_SECTIONS, ids=lambda each: getattr(each, "__name__", each))
def test_table_has_every_parameter_that_the_official_client_knows(parameters: type, section: str) -> None:
    described = {name for name, _ in rows(section)}
    hints = get_type_hints(parameters)
    assert set(hints) - IN_PATHS <= {name.partition(".")[0] for name in described}
    for name in hints.keys() - described - IN_PATHS:
        members = set(members_of(hints[name]))
        assert {f"{name}.{member}" for member in members} <= described, (
            "each member is described where the whole is not"
        )


@pytest.mark.parametrize(
    "parameters", [ResponseRetrieveParamsBase, ResponseRetrieveParamsStreaming, InputItemListParams]
)
def test_page_has_every_parameter_of_stored_responses(parameters: type) -> None:
    for name in set(get_type_hints(parameters)) - {"response_id"}:
        assert f"`{name}`" in RESPONSE_PAGES
