"""A short campaign of `make chaos`: nothing is lost, doubled or stale."""

import random

import pytest

from chaos.campaign import Campaign, Plan
from chaos.faults import ALL_FAULTS, WEIGHTS
from chaos.report import render
from chaos.system import ChaosSystem
from tests.system.amounts import kills

pytestmark = [pytest.mark.integration, pytest.mark.kill, pytest.mark.timeout(3600)]

PLAN = Plan(seed=20261122, rounds=kills(16), pause_s=2.0)


def test_short_campaign_loses_doubles_and_keeps_nothing_it_should_not() -> None:
    said: list[str] = []
    with ChaosSystem.on_empty_folder() as system:
        verdict = Campaign(system, PLAN, say=said.append).run()
    assert verdict.is_clean, render(PLAN, verdict)
    assert verdict.acknowledged > 0
    assert len(verdict.done) + verdict.left_out.total() == PLAN.rounds
    assert "acknowledged" in render(PLAN, verdict)


def test_each_kind_of_fault_has_a_weight_and_a_long_campaign_meets_all() -> None:
    assert set(WEIGHTS) == set(ALL_FAULTS)
    rng = random.Random(1)
    chosen = rng.choices(PLAN.faults, [WEIGHTS[name] for name in PLAN.faults], k=200)
    assert set(chosen) == set(ALL_FAULTS)
