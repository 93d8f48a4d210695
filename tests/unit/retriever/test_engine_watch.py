"""Operators see which engine is away, and which index is being filled again."""

from __future__ import annotations

import pytest

from kit.errors import Unavailable
from kit.observability.ops import Trouble
from services.retriever.models import RevisionKey
from services.retriever.upkeep.engine_watch import EngineWatch
from tests.unit.retriever.core_over_fakes import Core


@pytest.mark.parametrize("engine", ["dense", "lexical"])
async def test_engine_that_is_away_is_named_until_it_is_back(core: Core, engine: str) -> None:
    watch = EngineWatch(core.dense, core.lexical, core.gaps, clock=core.clock)
    await watch.look()
    assert watch.troubles() == []
    index = getattr(core, engine)
    index.error = Unavailable("connection refused at https://user:password@host", reason="INDEX_UNAVAILABLE")
    for _ in range(2):
        await watch.look()
        core.now_s += 5
    text = "does not answer since 10 s (INDEX_UNAVAILABLE); searches go on without it and say so"
    assert watch.troubles() == [Trouble(engine, text)]
    index.error = None
    await watch.look()
    assert watch.troubles() == []


async def test_document_that_was_made_again_is_no_longer_missed(core: Core) -> None:
    watch = EngineWatch(core.dense, core.lexical, core.gaps, clock=core.clock)
    await core.publish(RevisionKey("local", "d1", "r1"), ["solar"])
    core.lexical.rows = []
    await core.reconciler.reconcile()
    assert watch.troubles()
    await core.publish(RevisionKey("local", "d1", "r2"), ["solar"], number=2)
    await watch.look()
    assert watch.troubles() == []


async def test_index_that_is_being_filled_again_is_named(core: Core) -> None:
    watch = EngineWatch(core.dense, core.lexical, core.gaps, clock=core.clock)
    await core.publish(RevisionKey("local", "d1", "r1"), ["solar"], embedded_prefix="")
    core.lexical.rows = []
    await core.reconciler.reconcile()
    (trouble,) = watch.troubles()
    assert (trouble.part, trouble.stops_service) == ("lexical", False)
    assert "1 documents" in trouble.message
    await core.refiller.fill()
    assert watch.troubles() == []
