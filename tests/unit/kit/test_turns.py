"""Whose job comes next."""

import pytest

from kit.jetstream.queues.turns import Turns, bulk_lane


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def take(turns: Turns, jobs: dict[str, int]) -> str | None:
    """The next tenant that has a job; takes the job in hand."""
    while (tenant := turns.next()) is not None:
        if jobs.get(tenant, 0):
            jobs[tenant] -= 1
            turns.took(tenant)
            return tenant
        turns.nothing(tenant)
    return None


def test_tenants_take_turns_however_much_each_has(clock: Clock) -> None:
    turns = Turns(100, clock)
    jobs = {"acme": 1000, "bee": 2, "cat": 1}
    turns.may_have(jobs)
    assert [take(turns, jobs) for _ in range(7)] == ["acme", "bee", "cat", "acme", "bee", "acme", "acme"]


def test_no_tenant_has_all_places_and_a_later_one_finds_one(clock: Clock) -> None:
    turns = Turns(64, clock)
    jobs = dict.fromkeys("abcdef", 100)
    held = {}
    for tenant in jobs:
        turns.may_have([tenant])
        held[tenant] = 0
        while take(turns, jobs) is not None:
            held[tenant] += 1
    assert held == {"a": 40, "b": 15, "c": 5, "d": 2, "e": 1, "f": 1}


def test_single_place_is_had_by_whoever_is_next(clock: Clock) -> None:
    turns = Turns(1, clock)
    jobs = {"acme": 5, "bee": 1}
    turns.may_have(jobs)
    assert take(turns, jobs) == "acme"
    turns.done("acme")
    assert take(turns, jobs) == "bee"


def test_place_that_falls_free_lets_a_waiting_tenant_go_on(clock: Clock) -> None:
    turns = Turns(2, clock)
    jobs = {"acme": 5}
    turns.may_have(jobs)
    assert take(turns, jobs) == "acme"
    assert take(turns, jobs) is None, "half of the places is its share"
    turns.done("acme")
    assert take(turns, jobs) == "acme"


def test_tenant_without_a_job_is_not_asked_again_before_something_is_heard(clock: Clock) -> None:
    turns = Turns(4, clock)
    turns.may_have(["acme"])
    assert take(turns, {}) is None
    clock.now = 1000.0
    assert turns.next() is None
    turns.may_have(["acme"])
    assert turns.next() == "acme"


def test_tenant_is_asked_when_its_job_is_to_come_back_and_a_little_longer(clock: Clock) -> None:
    turns = Turns(4, clock)
    turns.comes_back("acme", 60.0)
    assert turns.next() is None
    assert turns.wait_s(100.0) == pytest.approx(60.0)
    clock.now = 60.0
    asked = 0
    while asked < 100:
        tenant = turns.next()
        if tenant is not None:
            asked += 1
            turns.nothing(tenant)
        elif turns.wait_s(100.0) == 100.0:
            break
        else:
            clock.now += turns.wait_s(100.0)
    assert 3 < asked < 10


def test_lanes_of_a_tenant_take_turns_and_count_as_one_tenant(clock: Clock) -> None:
    turns = Turns(100, clock)
    jobs = {bulk_lane("acme"): 1000, "acme": 2, "bee": 3}
    turns.may_have(jobs)
    order = [take(turns, jobs) for _ in range(7)]
    assert order[:6:2] == [bulk_lane("acme"), "acme", bulk_lane("acme")]
    assert order[1:6:2] == ["bee", "bee", "bee"], "a tenant with two lanes has one turn, as others do"
    assert order[6] == "acme"


def test_single_upload_finds_a_place_while_a_bulk_import_fills_the_tenants_share(clock: Clock) -> None:
    turns = Turns(64, clock)
    jobs = {bulk_lane("acme"): 1000}
    turns.may_have(jobs)
    held = 0
    while take(turns, jobs) is not None:
        held += 1
    assert held == 40
    jobs["acme"] = 100
    turns.may_have(["acme"])
    beside = 0
    while take(turns, jobs) is not None:
        beside += 1
    assert beside == 8
    jobs["bee"] = 1
    turns.may_have(["bee"])
    assert take(turns, jobs) == "bee", "and another tenant still finds one"
