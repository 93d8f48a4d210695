"""Agents that work in their own way: what they make is shown once, whichever worker goes on; what fails is answered by a search."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from services.orchestrator.agent import Agent
from services.orchestrator.artefacts.kinds import points_into, problem_with
from services.orchestrator.log.events import (
    Answer,
    Artefact,
    ArtefactItem,
    Evidence,
    Payload,
    Retrieval,
    RunMode,
    RunStatus,
    Thinking,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunRecord, RunRequest
from services.orchestrator.modes.agents import Agents, discover_agents
from services.orchestrator.work import Work
from tests.unit.orchestrator.cutting import AT, KEY, DyingLog, cut_and_continued, cuts, told, worked
from tests.unit.orchestrator.fakes import FakeSearcher
from tests.unit.orchestrator.serving import document_modes, mode_services

GUIDE = Path(__file__).parents[3] / "docs" / "agents.md"
CONTRACT = (
    Evidence(
        1,
        "c1",
        "d1",
        "lease.txt",
        "The Tenant shall pay the rent monthly. The Landlord must keep the roof tight.",
        page=4,
    ),
    Evidence(2, "c2", "d1", "lease.txt", "Pets are welcome. The Tenant may not sublet the flat.", page=5),
)


def legal_review(folder: Path) -> Agents:
    """The agents of the house, and the one of the guide."""
    source = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)[1]
    (folder / "legal_review.py").write_text(source)
    return discover_agents([folder])


def worker(agents: Agents, searcher: FakeSearcher, agent: str) -> Any:
    request = RunRequest(RunMode.GROUNDED, "Which duties does the lease have?", ("default",), agent=agent)
    record = RunRecord(KEY, "ann", request, RunStatus.RUNNING, AT)
    modes = document_modes(mode_services(agents=agents, searcher=searcher))

    async def work(journal: Journal) -> RunStatus:
        return await modes.run(record, journal)

    return work


def searcher() -> FakeSearcher:
    return FakeSearcher(Retrieval(CONTRACT, strategy="hybrid"))


async def test_agent_of_the_guide_makes_a_table_with_a_citation_for_each_row(tmp_path: Path) -> None:
    asked = searcher()
    events = await worked(DyingLog(), worker(legal_review(tmp_path), asked, "legal_review"))
    assert asked.queries[0].weights == {"dense": 1, "lexical": 3}
    (made,) = [each.payload for each in events if isinstance(each.payload, Artefact)]
    (answer,) = [each.payload for each in events if isinstance(each.payload, Answer)]
    assert answer.artefacts == (made,)
    assert made.body == {
        "columns": ["Party", "Duty"],
        "rows": [
            ["The Tenant", "shall pay the rent monthly"],
            ["The Landlord", "must keep the roof tight"],
            ["The Tenant", "may not sublet the flat"],
        ],
    }
    quoted = [each.text[each.quote_start : each.quote_end] for each in made.citations]
    assert quoted[2] == "The Tenant may not sublet the flat."
    assert [(item.path, item.citations) for item in made.items] == [
        ("/rows/0", (1,)),
        ("/rows/1", (2,)),
        ("/rows/2", (3,)),
    ]
    assert answer.text.endswith("The Tenant may not sublet the flat. [3]")


async def test_work_that_is_cut_off_anywhere_ends_the_same(tmp_path: Path) -> None:
    agents = legal_review(tmp_path)
    whole = await worked(DyingLog(), worker(agents, searcher(), "legal_review"))
    for cut in cuts(whole):
        log = DyingLog()
        workers = [worker(agents, searcher(), "legal_review") for _ in range(2)]
        assert told(await cut_and_continued(log, workers, cut)) == told(whole), str(cut)


async def breaks(_: Work) -> Answer:
    raise ZeroDivisionError


async def leaves_it(_: Work) -> None:
    return None


async def shows_nonsense(work: Work) -> None:
    await work.publish(Artefact("t", "table", "Table", {"columns": []}))


@pytest.mark.parametrize(
    ("own", "reasons"), [(breaks, ["AGENT_FAILED"]), (leaves_it, []), (shows_nonsense, ["AGENT_FAILED"])]
)
async def test_work_that_comes_to_nothing_is_answered_by_a_search(own: Any, reasons: list[str]) -> None:
    agents = Agents(
        {"reasoning": replace(discover_agents().default, name="reasoning"), "odd": Agent("Odd.", work=own, name="odd")}
    )
    events = await worked(DyingLog(), worker(agents, FakeSearcher(), "odd"))
    payloads: list[Payload] = [each.payload for each in events]
    told = [each.degraded.reason for each in payloads if isinstance(each, Thinking) and each.degraded]
    assert told == reasons
    assert any(isinstance(each, Answer) for each in payloads)


@pytest.mark.parametrize(
    ("path", "is_there"),
    [
        ("", True),
        ("/rows/0", True),
        ("/rows/0/1", True),
        ("/rows/1", False),
        ("rows", False),
        ("/a~1b", True),
        ("/rows/x", False),
    ],
)
def test_pointer_names_a_part_of_the_body(path: str, is_there: bool) -> None:
    assert points_into({"rows": [["a", "b"]], "a/b": 1}, path) is is_there


def test_item_may_cite_only_what_the_artefact_has() -> None:
    body = {"columns": ["a"], "rows": [["b"]]}
    assert problem_with(Artefact("t", "table", "", body, (ArtefactItem("/rows/0/0", (1,)),)), {}).startswith("The item")
    assert "has no schema" in problem_with(Artefact("t", "hologram", "", body), {})
    assert not problem_with(Artefact("t", "hologram", "", body), {"hologram": {"type": "object"}})
    assert "too long" in problem_with(Artefact("t", "table", "", {"columns": ["a"], "rows": [["b" * 300_000]]}), {})
