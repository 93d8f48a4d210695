"""Curated records: reading them, searching them, giving them out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from kit.process.configuration import setting_problems
from services.tools.context import ToolContext
from services.tools.errors import ToolError
from services.tools.ports import EmbeddedQuery, Vector
from services.tools.projects import searching
from services.tools.projects.records import Record, Records, RecordsUnreadable, load_records
from services.tools.projects.searching import RecordSearch
from services.tools.settings import ToolsSettings
from services.tools.toolbox.data.get_project_details import get_project_details
from services.tools.toolbox.data.portfolio import portfolio
from services.tools.toolbox.data.search_projects import search_projects
from tests.unit.tools.document_fakes import tool_context

AXES = ("ship", "bread", "music")
"""What the fake model knows: a text is about what it names, in whatever language."""
SYNONYMS = {"vessel": "ship", "baking": "bread", "songs": "music"}


@dataclass
class FakeModels:
    """ModelServer whose vectors count the words of AXES and their synonyms."""

    embeds: bool = True
    reranks: bool = True
    embedded: list[str] = field(default_factory=list)

    model: str = "fake-model"
    cosine: float | None = None
    """Of every query with every passage, in place of what their words say."""

    async def embed_query(self, text: str) -> EmbeddedQuery:
        vector = self._vector(text)
        if self.cosine is not None:
            vector = np.array([self.cosine, np.sqrt(1 - self.cosine**2)], dtype=np.float32)
        return EmbeddedQuery(vector, self.model)

    async def embed_passages(self, texts: Sequence[str], model: str = "") -> Sequence[Vector]:
        if self.cosine is not None:
            return [np.array([1.0, 0.0], dtype=np.float32) for _ in texts]
        self.embedded += texts
        return [self._vector(text) for text in texts]

    async def rerank(
        self, query_text: str, texts: Sequence[str], content_hashes: Sequence[str] = ()
    ) -> Sequence[float]:
        if not self.reranks:
            raise ToolError("the model server does not answer now; try again in a minute")
        query = self._vector(query_text)
        return [float(self._vector(text) @ query) for text in texts]

    def _vector(self, text: str) -> Vector:
        if not self.embeds:
            raise ToolError("the model server does not answer now; try again in a minute")
        words = [SYNONYMS.get(word, word) for word in text.lower().split()]
        counts = np.array([words.count(axis) for axis in AXES] + [0.1], dtype=np.float32)
        return counts / np.linalg.norm(counts)


RECORDS = Records(
    [
        Record(id="1", name="Harbour", summary="where a ship lands", technologies=("Go", "Qdrant Edge"), year=2020),
        Record(
            id="2", name="Bakery", summary="bread every day", technologies=("Python",), year=2024, role="Lead, data"
        ),
        Record(id="jukebox", name="Jukebox", summary="music and bread", technologies=("MongoDB",), year=2024),
    ]
)


@pytest.fixture
def models() -> FakeModels:
    return FakeModels()


def _context(models: FakeModels, records: Records = RECORDS) -> ToolContext:
    return tool_context(models=models, records=RecordSearch(records, similarity_min=0.25))


async def _found(query: str, models: FakeModels, records: Records = RECORDS, **more: Any) -> dict[str, Any]:
    content: dict[str, Any] = (await search_projects(query, _context(models, records), **more)).content
    return content


def _ids(content: dict[str, Any]) -> list[str]:
    return [project["id"] for project in content["projects"]]


async def test_projects_are_found_by_meaning_and_by_words(models: FakeModels) -> None:
    by_meaning = await _found("which vessel", models)
    assert _ids(by_meaning) == ["1"]
    assert by_meaning["projects"][0]["found_by"] == "meaning"
    assert by_meaning["projects"][0]["similarity"] > 0.9
    by_words = await _found("qdrant", models)
    assert (_ids(by_words), by_words["projects"][0]["found_by"]) == (["1"], "words")


@pytest.mark.parametrize(
    ("model", "setting", "found"),
    [
        ("multilingual-e5-small-q4-centred", None, []),
        ("all-MiniLM-L6-v2-int8", None, ["1"]),
        ("a-model-of-ones-own", None, ["1"]),
        ("multilingual-e5-small-q4-centred", 0.2, ["1"]),
        ("all-MiniLM-L6-v2-int8", 0.5, []),
    ],
)
async def test_what_is_noise_is_the_settings_or_the_models(
    models: FakeModels, model: str, setting: float | None, found: list[str]
) -> None:
    models.model, models.cosine = model, 0.3
    records = RecordSearch(Records([RECORDS.all[0]]), similarity_min=setting)
    content = (await search_projects("which vessel", tool_context(models=models, records=records))).content
    assert _ids(content) == found


async def test_records_are_embedded_again_when_the_model_server_has_another_model(models: FakeModels) -> None:
    context = _context(models)
    for model, times in (("one", 1), ("one", 1), ("other", 2)):
        models.model = model
        await search_projects("which vessel", context)
        assert len(models.embedded) == times * len(RECORDS.all)


async def test_the_reranker_has_the_last_word(models: FakeModels) -> None:
    assert _ids(await _found("baking songs", models)) == ["jukebox", "2"]
    assert _ids(await _found("baking songs", models, top_k=1)) == ["jukebox"]


async def test_what_nothing_speaks_of_finds_nothing(models: FakeModels) -> None:
    content = await _found("tax law of Portugal", models)
    assert content["projects"] == []
    assert "portfolio" in content["message"]
    assert (await _found("bread", models, Records()))["projects"] == []


async def test_one_common_word_of_many_is_no_match(models: FakeModels) -> None:
    models.embeds = False
    assert _ids(await _found("submarine volcanoes that erupt every century", models)) == []


async def test_without_the_model_server_words_decide_and_the_answer_says_so(models: FakeModels) -> None:
    models.embeds = models.reranks = False
    content = await _found("bread", models)
    assert _ids(content) == ["2", "jukebox"]
    assert content["degraded"][0].startswith("Found by words alone, not by meaning: the model server does not answer")
    assert "similarity" not in content["projects"][0]


async def test_without_the_reranker_projects_come_in_fused_order(models: FakeModels) -> None:
    models.reranks = False
    content = await _found("bread", models)
    assert _ids(content) == ["2", "jukebox"]
    assert [said.split(":")[0] for said in content["degraded"]] == ["Not reranked"]


async def test_records_are_embedded_once(models: FakeModels) -> None:
    context = _context(models)
    await search_projects("a ship", context)
    await search_projects("bread", context)
    assert len(models.embedded) == len(RECORDS.all)


async def test_a_search_that_runs_out_of_time_keeps_what_is_embedded(
    models: FakeModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "_FIRST_BATCH", 1)
    embed_passages, given_up_after = models.embed_passages, 1

    async def slow(texts: Sequence[str], model: str = "") -> Sequence[Vector]:
        if len(models.embedded) == given_up_after:
            raise TimeoutError  # as asyncio.timeout does
        return await embed_passages(texts)

    monkeypatch.setattr(models, "embed_passages", slow)
    context = _context(models)
    content = (await search_projects("bread", context)).content
    assert content["degraded"][0].startswith("Found by words alone: the model server is still reading")
    given_up_after = -1
    assert "degraded" not in (await search_projects("bread", context)).content
    assert len(models.embedded) == len(RECORDS.all)


@pytest.mark.parametrize("asked", ["jukebox", "JukeBox", 1, "1"])
async def test_a_project_is_given_whole(asked: str | int, models: FakeModels) -> None:
    content = (await get_project_details(asked, _context(models))).content
    assert content["name"] == ("Harbour" if str(asked) == "1" else "Jukebox")
    assert "description" not in content  # it has none


@pytest.mark.parametrize(
    ("asked", "says"), [("jukebx", "ids near it are: jukebox"), ("harbor", "1 .Harbour."), ("xyz", "1 .Harbour., 2 .B")]
)
async def test_an_unknown_project_is_an_error_that_names_near_ones(asked: str, says: str, models: FakeModels) -> None:
    with pytest.raises(ToolError, match=says) as failure:
        await get_project_details(asked, _context(models))
    assert failure.value.reason == "PROJECT_NOT_FOUND"


async def test_where_there_are_no_records_that_is_said(models: FakeModels) -> None:
    with pytest.raises(ToolError, match="no records of projects"):
        await get_project_details("1", _context(models, Records()))


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        ({}, ["2", "jukebox", "1"]),
        ({"technology": "qdrant"}, ["1"]),
        ({"technology": "go"}, ["1"]),
        ({"technology": "edge QDRANT"}, ["1"]),
        ({"year_from": 2021}, ["2", "jukebox"]),
        ({"year_to": 2020}, ["1"]),
        ({"role": "lead"}, ["2"]),
        ({"limit": 1}, ["2"]),
        ({"limit": 1, "offset": 2}, ["1"]),
    ],
)
async def test_an_overview_is_narrowed(arguments: dict[str, Any], ids: list[str], models: FakeModels) -> None:
    content = (await portfolio(_context(models), **arguments)).content
    assert _ids(content) == ids
    assert content["projects_in_all"] == 3
    assert content["projects_that_fit"] == content["not_listed"] + len(ids)


async def test_an_overview_counts(models: FakeModels) -> None:
    content = (await portfolio(_context(models), year_from=2024)).content
    assert content["by_technology"] == {"Python": 1, "MongoDB": 1}
    assert content["by_year"] == {"2024": 2}
    assert content["by_role"] == {"Lead, data": 1}


async def test_an_overview_of_nothing_says_what_there_is(models: FakeModels) -> None:
    content = (await portfolio(_context(models), technology="COBOL")).content
    assert content["projects"] == []
    assert content["available"]["by_year"] == {"2024": 2, "2020": 1}


@pytest.mark.parametrize("write", [json.dumps, lambda items: "\n\n".join(json.dumps(item) for item in items)])
def test_records_are_read_from_an_array_or_lines(write: Any, tmp_path: Path) -> None:
    path = tmp_path / "records"
    path.write_text("\ufeff" + write([{"id": 7, "name": "A", "details": {"stars": 3}}, {"id": "b", "name": "B"}]))
    records = load_records(path)
    assert [record.id for record in records.all] == ["7", "b"]
    assert records.all[0].details == {"stars": 3}


def test_the_example_is_about_this_system() -> None:
    assert {"gateway", "orchestrator", "retriever", "tools"} <= {record.id for record in load_records(None).all}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[{"id": "a"}]', r"record 1 \(id 'a'\): name: Field required"),
        (
            '{"id": "a", "name": "A"}\n{"id": "b", "nmae": "B"}',
            r"line 2 \(id 'b'\): name: Field required; line 2 .*nmae",
        ),
        ('[{"id": "a", "name": "A", "technologies": ["x", 1]}]', r"technologies\.1: Input should be a valid string"),
        ('[{"id": "a", "name": "A", "links": ["javascript:alert(1)"]}]', r"links\.0: String should match"),
        ('[{"id": 1, "name": "A"}, {"id": "1", "name": "B"}]', "record 2 .*another record has this id"),
        ('[{"id": "a",]', "the file is not JSON .*write a JSON array"),
        ('{"id": "a", "name": "A"}\nnonsense', "line 2 is not JSON"),
        ("[1]", "record 1: Input should be a valid dictionary"),
        ("[" + ",".join(["{}"] * 20) + "]", "and 35 more"),
        ("\n".join(f'{{"id": {n}, "name": "A"}}' for n in range(1001)), "1001 records, and at most 1000"),
    ],
)
def test_records_that_cannot_be_served_are_refused_with_the_place(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "records.json"
    path.write_text(text)
    with pytest.raises(RecordsUnreadable, match=says):
        load_records(path)


def test_a_file_that_is_not_there_is_a_wrong_setting(tmp_path: Path) -> None:
    with pytest.raises(ValidationError) as failure:
        ToolsSettings(tools_records_file=tmp_path / "none.json")
    [line] = setting_problems(failure.value, ToolsSettings)
    assert line.startswith("GROUNDWORK_TOOLS_RECORDS_FILE=")
    assert "cannot be read" in line
