"""The planner's decisions about one round, and when two calls are the same."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.orchestrator.log.events import EffectClass
from services.orchestrator.models import Tool
from services.orchestrator.toolloop.calls.fingerprint import fingerprint
from services.orchestrator.toolloop.calls.planner import Allowance, Drop, History, Requested, may_run_beside, plan

SEARCH = Tool("search", "", {})
FETCH = Tool("fetch_docs", "", {})
RERANK = Tool("rerank", "", {}, requires_fresh_input=True)
STORE = Tool("store", "", {}, EffectClass.IDEMPOTENT, parallel_safe=False)
PAY = Tool("pay", "", {}, EffectClass.ONCE)
MAIL = Tool("mail", "", {}, EffectClass.ONCE, needs_approval=True)
TOOLS = (SEARCH, FETCH, RERANK, STORE, PAY, MAIL)
NO_LIMIT = Allowance()


def asked(tool: Tool, query: str = "a") -> Requested:
    return Requested(tool.name, tool, {"query": query})


def made(*calls: Requested, number: int = 1, findings: tuple[str, ...] = (), is_effect: bool = False) -> History:
    history = History()
    for call in calls:
        assert call.tool is not None
        history.note_call(number, fingerprint(call.tool, call.arguments), is_effect=is_effect)
    history.note_findings(number, findings)
    return history


def drops(*calls: Requested, history: History | None = None, allowance: Allowance = NO_LIMIT) -> list[Drop | None]:
    return [decision.dropped for decision in plan(calls, history or History(), allowance).decisions]


def test_call_of_an_earlier_round_is_dropped_as_long_as_nothing_new_was_found() -> None:
    history = made(asked(SEARCH), findings=("chunk:1",))
    assert drops(asked(SEARCH), asked(SEARCH, "b"), history=history) == [Drop.REPEATED, None]
    history.note_findings(2, ["chunk:1"])
    assert drops(asked(SEARCH), history=history) == [Drop.REPEATED], "seen before: no new evidence"
    history.note_findings(3, ["chunk:1", "chunk:2"])
    assert drops(asked(SEARCH), history=history) == [None]


def test_evidence_of_its_own_round_does_not_let_a_call_run_again() -> None:
    history = made(asked(SEARCH), asked(FETCH), findings=("chunk:1", "chunk:2"))
    assert drops(asked(SEARCH), asked(FETCH), history=history) == [Drop.REPEATED, Drop.REPEATED]


def test_second_of_two_equal_calls_in_one_round_is_dropped() -> None:
    assert drops(asked(SEARCH), asked(FETCH), asked(SEARCH, " A ")) == [None, None, Drop.TWICE]


def test_effect_is_not_caused_twice_whatever_was_found() -> None:
    history = made(asked(PAY), is_effect=True)
    history.note_findings(2, ["chunk:1"])
    assert drops(asked(PAY), asked(PAY, "b"), history=history) == [Drop.DONE, None]


def test_denied_call_is_not_asked_about_again() -> None:
    history = History()
    history.note_denial(1, fingerprint(MAIL, {"query": "a"}))
    history.note_findings(2, ["chunk:1"])
    assert drops(asked(MAIL), asked(MAIL, "b"), history=history) == [Drop.DENIED, None]


def test_calls_over_the_budget_are_dropped_and_dropped_ones_cost_nothing() -> None:
    requests = [asked(SEARCH), asked(SEARCH), Requested("fly", None), asked(FETCH), asked(STORE)]
    assert drops(*requests, allowance=Allowance(calls=2)) == [None, Drop.TWICE, Drop.UNKNOWN, None, Drop.OVER_BUDGET]
    assert drops(asked(SEARCH), allowance=Allowance(calls=0)) == [Drop.OVER_BUDGET]


def test_unknown_withheld_and_unreadable_calls_are_told_apart() -> None:
    requests = [Requested("fly", None), Requested("mail", None, is_withheld=True), replace(asked(SEARCH), problem="no")]
    assert drops(*requests) == [Drop.UNKNOWN, Drop.WITHHELD, Drop.UNREADABLE]


@pytest.mark.parametrize(
    ("calls", "parallel", "batches"),
    [
        ([asked(SEARCH), asked(FETCH), asked(SEARCH, "b")], 3, ((0, 1, 2),)),
        ([asked(SEARCH), asked(FETCH), asked(SEARCH, "b")], 2, ((0, 1), (2,))),
        ([asked(SEARCH), asked(FETCH)], None, ((0, 1),)),
        ([asked(SEARCH), asked(RERANK), asked(FETCH)], 3, ((0,), (1,), (2,))),
        ([asked(STORE), asked(STORE, "b")], 3, ((0,), (1,))),
        ([asked(MAIL), asked(MAIL, "b"), asked(SEARCH)], 3, ((0,), (1,), (2,))),
        ([asked(SEARCH), asked(SEARCH), asked(FETCH)], 3, ((0, 2),)),
    ],
)
def test_neighbours_that_may_run_beside_each_other_share_a_batch(
    calls: list[Requested], parallel: int | None, batches: tuple[tuple[int, ...], ...]
) -> None:
    assert plan(calls, History(), Allowance(parallel=parallel)).batches == batches


REQUESTS = st.lists(
    st.builds(asked, st.sampled_from(TOOLS), st.sampled_from("abc")) | st.just(Requested("fly", None)), max_size=9
)
HISTORIES = st.builds(
    made,
    st.builds(asked, st.sampled_from(TOOLS), st.sampled_from("abc")),
    findings=st.sampled_from([(), ("chunk:1",)]),
    is_effect=st.booleans(),
)


@given(REQUESTS, HISTORIES, st.none() | st.integers(0, 5), st.none() | st.integers(1, 4))
def test_every_plan_keeps_the_promises(
    requests: list[Requested], history: History, calls: int | None, parallel: int | None
) -> None:
    decided = plan(requests, history, Allowance(calls, parallel))
    assert len(decided.decisions) == len(requests)
    kept = [index for index, decision in enumerate(decided.decisions) if decision.dropped is None]
    assert [index for batch in decided.batches for index in batch] == kept, "in the order of the requests"
    prints = [decided.decisions[index].fingerprint for index in kept]
    assert len(set(prints)) == len(prints)
    assert not set(prints) & (history.made_in.keys() if history.newest_evidence <= 1 else history.caused.keys())
    assert calls is None or len(kept) <= calls
    for batch in decided.batches:
        assert parallel is None or len(batch) <= parallel
        assert len(batch) == 1 or all(may_run_beside(requests[index].tool or STORE) for index in batch)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"query": "the tower"}, {"query": "  The\u00a0 TOWER\n"}),
        ({"query": "a", "top_k": 5}, {"top_k": 5, "query": "a"}),
        ({"query": "a", "top_k": 5.0}, {"query": "a", "top_k": 5}),
        ({"query": "a", "page": None}, {"query": "a"}),
        ({"query": "caf\u00e9"}, {"query": "cafe\u0301"}),
        ({"filter": {"b": 1, "a": ["X"]}}, {"filter": {"a": ["x"], "b": 1}}),
    ],
)
def test_calls_that_mean_the_same_have_one_fingerprint(first: dict[str, object], second: dict[str, object]) -> None:
    assert fingerprint(SEARCH, first) == fingerprint(SEARCH, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"query": "a b"}, {"query": "ab"}),
        ({"ids": ["a", "b"]}, {"ids": ["b", "a"]}),
        ({"flag": True}, {"flag": 1}),
        ({"n": "1"}, {"n": 1}),
        ({"query": "a"}, {"text": "a"}),
    ],
)
def test_calls_that_differ_have_two(first: dict[str, object], second: dict[str, object]) -> None:
    assert fingerprint(SEARCH, first) != fingerprint(SEARCH, second)
    assert fingerprint(SEARCH, first) != fingerprint(FETCH, first)


def test_only_key_arguments_count_where_a_tool_names_them() -> None:
    keyed = replace(SEARCH, key_arguments=("query",))
    assert fingerprint(keyed, {"query": "a", "top_k": 5}) == fingerprint(keyed, {"query": "a", "top_k": 9})
    assert fingerprint(SEARCH, {"query": "a", "top_k": 5}) != fingerprint(SEARCH, {"query": "a", "top_k": 9})


def test_calls_with_an_effect_are_compared_letter_by_letter() -> None:
    assert fingerprint(PAY, {"to": "Bob"}) != fingerprint(PAY, {"to": "bob"})
    assert fingerprint(PAY, {"to": "Bob", "sum": 1}) == fingerprint(PAY, {"sum": 1, "to": "Bob"})
