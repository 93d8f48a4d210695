"""Changing models while everything runs, over a real NATS server."""

import asyncio
from contextlib import AbstractAsyncContextManager

import pytest

from kit.jetstream import KeyValue, Nats
from kit.llm import ModelRejected, ModelUnavailable, Operation, TextDelta
from kit.llm.providers import Catalog, Choice, UnknownModel
from kit.llm.switching import ModelSwitch
from tests.unit.kit.llm_fakes import SET_AT, Script, catalog, collect, following_switch, provider, says

B = Choice("b", "m")


def script() -> Script:
    return Script({"a/m": [says("a")], "b/m": [says("b")]})


def replica(
    nats: Nats, offered: Catalog | None = None, using: Script | None = None
) -> AbstractAsyncContextManager[ModelSwitch]:
    """A process that follows the settings."""
    return following_switch(nats, using or script(), offered or catalog("a/m", providers={"b": provider()}))


async def until_asked_first(switch: ModelSwitch, choice: Choice) -> None:
    async with asyncio.timeout(60):
        while switch.models.chain(Operation.ANSWER)[0] != choice:
            await asyncio.sleep(0.01)


async def test_a_set_model_answers_on_all_replicas_and_after_a_restart(jetstream: Nats) -> None:
    async with replica(jetstream) as one, replica(jetstream) as other:
        await one.set(Operation.ANSWER, B, by="ann")
        assert await collect(one.models) == [TextDelta("b"), *(await collect(one.models))[1:]]
        await until_asked_first(other, B)
        (found,) = [each for each in other.operations() if each.operation is Operation.ANSWER]
        assert found.set_model is not None
        assert (found.set_model.set_by, found.set_model.set_at) == ("ann", SET_AT)
        assert [str(each) for each in found.chain] == ["b/m", "a/m"]
        assert other.models.chain(Operation.PLAN) == [Choice("a", "m")]
    async with replica(jetstream) as restarted:
        assert restarted.models.chain(Operation.ANSWER)[0] == B
        await restarted.reset(Operation.ANSWER)
        assert restarted.models.chain(Operation.ANSWER) == [Choice("a", "m")]
        assert not any(each.set_model for each in restarted.operations())


async def test_a_model_that_does_not_answer_is_set_by_force_only(jetstream: Nats) -> None:
    silent = Script({"a/m": [says("a")], "b/m": [[ModelUnavailable("b is away", retry_after_s=999.0)]]})
    async with replica(jetstream, using=silent) as one:
        with pytest.raises(ModelRejected, match=r"b is away.*force"):
            await one.set(Operation.ANSWER, B, by="ann")
        assert one.models.chain(Operation.ANSWER) == [Choice("a", "m")]
        await one.set(Operation.ANSWER, B, by="ann", force=True)
        assert one.models.chain(Operation.ANSWER)[0] == B


async def test_what_the_settings_do_not_offer_is_refused_even_by_force(jetstream: Nats) -> None:
    async with replica(jetstream) as one:
        with pytest.raises(UnknownModel, match="there is no provider 'z'"):
            await one.set(Operation.ANSWER, Choice("z", "m"), by="ann", force=True)


async def test_a_model_that_the_settings_offer_no_more_gives_way_to_the_configured_one(jetstream: Nats) -> None:
    async with replica(jetstream) as one:
        await one.set(Operation.ANSWER, B, by="ann")
    async with replica(jetstream, catalog("a/m")) as without_b:
        assert without_b.models.chain(Operation.ANSWER) == [Choice("a", "m")]
        assert not any(each.set_model for each in without_b.operations())


async def test_settings_of_a_newer_version_stop_nothing(jetstream: Nats) -> None:
    async with replica(jetstream) as one:
        bucket = await KeyValue.open(jetstream, "MODEL_SETTINGS")
        await bucket.put("dream", b'{"provider": "b", "model": "m", "set_at": "2026-01-01T00:00:00+00:00"}')
        await bucket.put("answer", b"\x00")
        await one.set(Operation.PLAN, B, by="ann")
        assert one.models.chain(Operation.PLAN)[0] == B
        assert one.models.chain(Operation.ANSWER) == [Choice("a", "m")]
