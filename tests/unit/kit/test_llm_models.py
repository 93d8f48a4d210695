"""Several models as one: who is asked, when another is, and what is said of it."""

import asyncio
from contextlib import aclosing

import pytest
from pydantic import SecretStr

from kit import deadline
from kit.breaker import BreakerState
from kit.llm import (
    Finish,
    FinishReason,
    ModelRejected,
    ModelUnavailable,
    Operation,
    Request,
    Restart,
    TextDelta,
)
from kit.llm.brought import BroughtModel, use_brought_model
from kit.llm.providers import Choice, UnknownModel
from tests.unit.kit.llm_fakes import END, USAGE, Script, catalog, collect, models_of, provider, says

AWAY = ModelUnavailable("a is away")
REFUSED = ModelRejected("a refused the key")


def text(deltas: list[object]) -> str:
    """What is left of the answer: a Restart voids what came before it."""
    shown = ""
    for delta in deltas:
        if isinstance(delta, Restart):
            shown = ""
        elif isinstance(delta, TextDelta):
            shown += delta.text
    return shown


async def test_the_first_model_of_the_chain_answers_under_the_names_of_the_settings() -> None:
    script = Script({"a/m": [says("hello")]})
    async with models_of(script, catalog("a/m", "b/m")) as models:
        assert await collect(models) == [TextDelta("hello"), Finish(FinishReason.STOP, USAGE, "a", "m")]
    assert script.asked == ["a/m"]


async def test_each_operation_asks_its_own_model() -> None:
    script = Script({"a/m": [says("long")], "b/m": [says("short")]})
    both = catalog("a/m", providers={"b": provider()})
    async with models_of(script, both) as models:
        await models.use(Operation.PLAN, Choice("b", "m"))
        assert text(await collect(models, Operation.PLAN)) == "short"
        assert text(await collect(models, Operation.ANSWER)) == "long"


async def test_a_failure_that_may_pass_is_repeated_with_jittered_waits() -> None:
    script, waits = Script({"a/m": [[AWAY], [AWAY], says("hello")]}), list[float]()
    async with models_of(script, catalog("a/m"), waits=waits) as models:
        deltas = await collect(models)
    assert (text(deltas), script.asked, waits) == ("hello", ["a/m"] * 3, [0.2, 0.4])
    assert not any(isinstance(delta, Restart) for delta in deltas)


async def test_retry_after_is_honoured_when_it_is_affordable() -> None:
    script, waits = Script({"a/m": [[ModelUnavailable("busy", retry_after_s=3.0)], says("hello")]}), list[float]()
    async with models_of(script, catalog("a/m", "b/m"), waits=waits) as models:
        assert text(await collect(models)) == "hello"
    assert waits == [3.2]


async def test_retry_after_100_does_not_eat_the_run_and_others_do_not_knock_meanwhile() -> None:
    busy = ModelUnavailable("busy", retry_after_s=100.0)
    script, waits = Script({"a/m": [[busy]], "b/m": [says("hello")]}), list[float]()
    async with models_of(script, catalog("a/m", "b/m"), waits=waits) as models:
        first, second = await collect(models), await collect(models)
        assert models.state("a") is BreakerState.OPEN
    assert (text(first), text(second), waits) == ("hello", "hello", [])
    assert script.asked == ["a/m", "b/m", "b/m"]
    assert [delta.reason for delta in second if isinstance(delta, Restart)] == ["LLM_LEFT_ALONE"]


async def test_retry_after_100_does_not_eat_a_run_that_has_one_model_either() -> None:
    busy = ModelUnavailable("busy", retry_after_s=100.0)
    script, waits = Script({"a/m": [[busy]]}), list[float]()
    async with models_of(script, catalog("a/m"), waits=waits) as models:
        deadline.set_remaining(300.0)
        with pytest.raises(ModelUnavailable, match="busy"):
            await collect(models)
    assert waits == []


async def test_no_more_is_waited_than_half_of_what_the_run_has_left() -> None:
    script = Script({"a/m": [[ModelUnavailable("busy", retry_after_s=3.0)]], "b/m": [says("hello")]})
    waits = list[float]()
    async with models_of(script, catalog("a/m", "b/m"), waits=waits) as models:
        deadline.set_remaining(5.0)
        assert text(await collect(models)) == "hello"
    assert waits == []


async def test_a_refusal_is_not_repeated_and_the_next_model_answers() -> None:
    script = Script({"a/m": [[REFUSED]], "b/n": [says("hello")]})
    async with models_of(script, catalog("a/m", "b/n")) as models:
        deltas = await collect(models)
    assert deltas[0] == Restart("a", "m", "LLM_REJECTED", "a refused the key", "b")
    assert isinstance(deltas[-1], Finish)
    assert deltas[-1].provider == "b"


async def test_text_that_was_shown_is_declared_void_before_another_answer_begins() -> None:
    broken = [TextDelta("The tow"), AWAY]
    script = Script({"a/m": [broken], "b/m": [says("The bridge.")]})
    async with models_of(script, catalog("a/m", "b/m")) as models:
        deltas = await collect(models)
    assert text(deltas) == "The bridge."
    assert [delta.next_provider for delta in deltas if isinstance(delta, Restart)] == ["b"]
    assert script.asked == ["a/m", "b/m"]


async def test_an_answer_that_breaks_off_is_not_begun_again_by_the_same_model() -> None:
    script = Script({"a/m": [[TextDelta("The tow"), AWAY], says("The tower.")]})
    async with models_of(script, catalog("a/m")) as models:
        with pytest.raises(ModelUnavailable, match="a is away"):
            await collect(models)
    assert script.asked == ["a/m"]


@pytest.mark.parametrize("reason", [FinishReason.INCOMPLETE, FinishReason.CUT_OFF])
async def test_an_answer_that_was_cut_short_is_given_to_the_next_model(reason: FinishReason) -> None:
    script = Script({"a/m": [[TextDelta("The tow"), Finish(reason)]], "b/m": [says("The bridge.")]})
    async with models_of(script, catalog("a/m", "b/m")) as models:
        assert text(await collect(models)) == "The bridge."
    assert script.asked == ["a/m", "b/m"]


@pytest.mark.parametrize("reason", [FinishReason.LENGTH, FinishReason.CONTENT_FILTER])
async def test_a_full_or_filtered_answer_is_the_answer(reason: FinishReason) -> None:
    script = Script({"a/m": [[TextDelta("The tow"), Finish(reason)]]})
    async with models_of(script, catalog("a/m", "b/m")) as models:
        assert (await collect(models))[-1] == Finish(reason, provider="a", model="m")


async def test_a_cut_answer_of_the_last_model_is_passed_on_as_what_it_is() -> None:
    script = Script({"a/m": [[TextDelta("The tow"), Finish(FinishReason.INCOMPLETE)]]})
    async with models_of(script, catalog("a/m")) as models:
        assert (await collect(models))[-1] == Finish(FinishReason.INCOMPLETE, provider="a", model="m")


async def test_when_all_fail_the_error_names_all() -> None:
    script = Script({"a/m": [[REFUSED]], "b/m": [[ModelUnavailable("b is away")]]})
    async with models_of(script, catalog("a/m", "b/m")) as models:
        with pytest.raises(ModelUnavailable, match="no model answered: a refused the key; b is away"):
            await collect(models)


async def test_a_provider_that_keeps_failing_is_left_alone() -> None:
    script = Script({"a/m": [[AWAY]], "b/m": [says("hello")]})
    alone = catalog("a/m", "b/m", providers={"a": provider(retries=0, breaker_failures=2)})
    async with models_of(script, alone) as models:
        for _ in range(4):
            assert text(await collect(models)) == "hello"
        assert models.info(Operation.ANSWER).provider == "b"
    assert script.asked.count("a/m") == 2


async def test_repetitions_count_once_and_the_first_failure_is_told_when_the_breaker_opens_between_them() -> None:
    script = Script({"a/m": [[AWAY]]})
    alone = catalog("a/m", providers={"a": provider(retries=3, breaker_failures=2, breaker_open_s=3600.0)})
    async with models_of(script, alone) as models:
        reasons = []
        for _ in range(3):
            with pytest.raises(ModelUnavailable) as caught:
                await collect(models)
            reasons.append(caught.value.reason)
    assert reasons == ["LLM_UNAVAILABLE", "LLM_UNAVAILABLE", "LLM_LEFT_ALONE"]
    assert len(script.asked) == 8


async def test_a_probe_that_fails_is_not_repeated_and_one_that_succeeds_closes_the_breaker() -> None:
    script = Script({"a/m": [[AWAY], [AWAY], says("hello")]})
    alone = catalog("a/m", providers={"a": provider(retries=0, breaker_failures=1, breaker_open_s=0.01)})
    async with models_of(script, alone) as models:
        for _ in range(2):
            with pytest.raises(ModelUnavailable):
                await collect(models)
            async with asyncio.timeout(60):
                while models.state("a") is BreakerState.OPEN:
                    await asyncio.sleep(0.005)
        assert models.state("a") is BreakerState.HALF_OPEN
        assert text(await collect(models)) == "hello"
        assert models.state("a") is BreakerState.CLOSED


async def test_a_silent_model_is_given_up_in_time_for_the_next() -> None:
    script = Script({"a/m": [[asyncio.Event()]], "b/m": [says("hello")]})
    silent = catalog("a/m", "b/m", providers={"a": provider(retries=0, first_delta_timeout_s=0.05)})
    async with models_of(script, silent) as models:
        deltas = await collect(models)
    assert isinstance(deltas[0], Restart)
    assert (deltas[0].reason, text(deltas)) == ("LLM_TIMEOUT", "hello")


async def test_a_full_provider_is_passed_over_when_the_line_is_too_long() -> None:
    gate = asyncio.Event()
    script = Script({"a/m": [[TextDelta("…"), gate, END]], "b/m": [says("hello")]})
    narrow = catalog("a/m", "b/m", providers={"a": provider(max_concurrent=1, patience_s=0.05)})
    async with models_of(script, narrow) as models, aclosing(models.complete(Request((), 16))) as first:
        await anext(first)
        deltas = await collect(models)
        assert isinstance(deltas[0], Restart)
        assert (deltas[0].reason, text(deltas)) == ("LLM_BUSY", "hello")
        gate.set()
        assert isinstance([delta async for delta in first][-1], Finish)
        assert text(await collect(models)) == "…"


async def test_hanging_up_frees_the_slot_and_the_probe() -> None:
    script = Script({"a/m": [[TextDelta("…"), asyncio.Event()], says("hello")]})
    narrow = catalog("a/m", providers={"a": provider(max_concurrent=1, patience_s=0.0)})
    async with models_of(script, narrow) as models:
        async with aclosing(models.complete(Request((), 16))) as first:
            await anext(first)
        assert text(await collect(models)) == "hello"


async def test_a_completion_that_has_begun_keeps_its_model_when_another_is_set() -> None:
    gate = asyncio.Event()
    script = Script({"a/m": [[TextDelta("a"), gate, TextDelta("a"), END]], "b/m": [says("b")]})
    async with models_of(script, catalog("a/m", providers={"b": provider()})) as models:
        async with aclosing(models.complete(Request((), 16))) as begun:
            deltas = [await anext(begun)]
            await models.use(Operation.ANSWER, Choice("b", "m"))
            gate.set()
            deltas += [delta async for delta in begun]
        assert text(deltas) == "aa"  # type: ignore[arg-type] # a list of deltas is one of objects
        assert text(await collect(models)) == "b"
        assert models.chain(Operation.ANSWER) == [Choice("b", "m"), Choice("a", "m")]


async def test_a_step_that_holds_its_models_asks_them_again() -> None:
    script = Script({"a/m": [says("a")], "b/m": [says("b")]})
    async with models_of(script, catalog("a/m", providers={"b": provider()})) as models:
        with models.held():
            await models.use(Operation.ANSWER, Choice("b", "m"))
            assert text(await collect(models)) == "a"
        assert text(await collect(models)) == "b"


async def test_only_what_the_settings_offer_can_be_set() -> None:
    offered = catalog("a/m", providers={"a": provider(models={"m": {}, "n": {}}, any_model=False)})
    async with models_of(Script(), offered) as models:
        with pytest.raises(UnknownModel, match="there is no provider 'z'; there are a"):
            await models.use(Operation.ANSWER, Choice("z", "m"))
        with pytest.raises(UnknownModel, match="a has no model 'gpt-9'; it has m, n"):
            await models.use(Operation.ANSWER, Choice("a", "gpt-9"))


async def test_a_brought_model_is_asked_alone_and_closed_afterwards() -> None:
    script = Script({"yours/mine": [says("hello"), [REFUSED]], "a/m": [says("the operator's")]})
    mine = BroughtModel("https://models.example/v1", SecretStr("key"), "mine")
    async with models_of(script, catalog("a/m")) as models:
        with use_brought_model(mine):
            deltas = await collect(models)
            assert models.info(Operation.ANSWER).model == "mine"
            with pytest.raises(ModelRejected):
                await collect(models)
        assert text(await collect(models)) == "the operator's"
    assert isinstance(deltas[-1], Finish)
    assert (text(deltas), deltas[-1].provider) == ("hello", "yours")
    assert script.closed[:2] == ["yours/mine"] * 2
    assert script.opened[1].is_brought


async def test_without_a_provider_there_is_no_model_but_a_brought_one() -> None:
    script = Script({"yours/mine": [says("hello")]})
    async with models_of(script, None) as models:
        assert models.info(Operation.ANSWER).model == ""
        assert await models.count_tokens(["hello there"], Operation.ANSWER) > [1]
        with pytest.raises(ModelUnavailable, match="no model is configured"):
            await collect(models)
        with use_brought_model(BroughtModel("https://models.example/v1", SecretStr("key"), "mine")):
            assert text(await collect(models)) == "hello"


async def test_a_brought_model_that_cannot_be_read_any_more_is_no_reason_to_ask_another() -> None:
    gone = ModelUnavailable("its key is not stored any more", reason="BROUGHT_MODEL_GONE")
    script = Script({"a/m": [says("hello")]})
    async with models_of(script, catalog("a/m")) as models:
        with use_brought_model(gone), pytest.raises(ModelUnavailable, match="not stored any more"):
            await collect(models)
    assert script.asked == []
