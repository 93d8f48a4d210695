"""While an upgrade is under way a run may be begun by a newer version and continued by this one. What this version does not know is
carried along and shown as unknown; it is never a reason to drop the run."""

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FileDescriptor
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from groundwork.orchestrator.v1 import state_pb2

from services.orchestrator.adapters.codec import event_for_client, event_from_bytes, event_to_proto
from services.orchestrator.log.events import (
    Answer,
    Degradation,
    Done,
    EffectClass,
    RunEvent,
    RunMode,
    RunStarted,
    RunStatus,
    StepPhase,
    Thinking,
    Unknown,
)
from services.orchestrator.log.journal import Journal
from services.orchestrator.steps.run import Run
from tests.unit.orchestrator.cutting import AT, KEY, DyingLog, now, worked
from tests.unit.orchestrator.fakes import MemoryLog
from tests.unit.orchestrator.steps.test_cuts import Bank, Transfer, World, only

TEXT = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
MESSAGE = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
PACKAGE = "groundwork.orchestrator.v1"
NEWER = RunMode.GROUNDED, ("The tower was ", "built in 1889. [1]")

STARTED = RunStarted(RunMode.CHAT, "?")


@pytest.fixture(scope="module")
def newer() -> dict[str, Any]:
    """The contract of a newer version: an event of a new kind, new fields in the envelope, in a payload and in a step's state."""
    pool = descriptor_pool.DescriptorPool()
    for imported in pb.DESCRIPTOR.dependencies:
        add_file(pool, imported)
    contract = descriptor_pb2.FileDescriptorProto.FromString(pb.DESCRIPTOR.serialized_pb)
    messages = {message.name: message for message in contract.message_type}
    debate = contract.message_type.add(name="Debate")
    debate.field.add(name="topic", number=1, type=TEXT, label=1)
    event = messages["RunEvent"]
    event.field.add(
        name="debate",
        number=90,
        type=MESSAGE,
        label=1,
        type_name=f".{PACKAGE}.Debate",
        oneof_index=0,
        json_name="debate",
    )
    event.field.add(name="mood", number=91, type=TEXT, label=1)
    messages["Plan"].field.add(name="reason", number=90, type=TEXT, label=1)
    pool.AddSerializedFile(contract.SerializeToString())
    state = descriptor_pb2.FileDescriptorProto.FromString(state_pb2.DESCRIPTOR.serialized_pb)
    next(each for each in state.message_type if each.name == "StepState").field.add(
        name="weather", number=90, type=TEXT, label=1
    )
    pool.AddSerializedFile(state.SerializeToString())
    names = ("RunEvent", "StepState")
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in names}


def add_file(pool: descriptor_pool.DescriptorPool, file: FileDescriptor) -> None:
    """Adds a file with what it imports."""
    for imported in file.dependencies:
        add_file(pool, imported)
    pool.AddSerializedFile(file.serialized_pb)


def as_newer(newer: dict[str, Any], event: RunEvent) -> bytes:
    """The event as the newer version writes it."""
    message = newer["RunEvent"].FromString(event_to_proto(event).SerializeToString())
    message.mood = "calm"
    if message.WhichOneof("payload") == "plan":
        message.plan.reason = "experience"
    state = newer["StepState"].FromString(message.state)
    state.weather = "fair"
    message.state = state.SerializeToString()
    return bytes(message.SerializeToString())


def debate(newer: dict[str, Any], seq: int) -> bytes:
    """An event of the new kind: the result of a step that only the newer version has."""
    message = newer["RunEvent"](run_id=KEY.run_id, seq=seq, step="debate")
    message.at.FromSeconds(1)
    message.debate.topic = "towers"
    message.state = newer["StepState"](phase=1, weather="fair").SerializeToString()
    return bytes(message.SerializeToString())


async def test_run_of_a_newer_version_is_continued_from_anywhere(newer: dict[str, Any]) -> None:
    whole = list(await worked(DyingLog(), World(*NEWER).work))
    for cut in range(1, len(whole)):
        log, world = DyingLog(), World(*NEWER)
        begun = [as_newer(newer, event) for event in whole[:cut]]
        begun.append(debate(newer, cut + 1))
        log.events[KEY] = [event_from_bytes(each) for each in begun]
        events = await worked(log, world.work)
        assert [event.seq for event in events] == list(range(1, len(events) + 1)), cut
        assert isinstance(events[cut].payload, Unknown), cut
        assert only(events, Answer) == only(whole, Answer), cut
        assert only(events, Done) == only(whole, Done), cut
        assert [event.raw for event in events[: cut + 1]] == begun, cut


async def test_what_is_unknown_reaches_clients_that_know_it(newer: dict[str, Any]) -> None:
    event = event_from_bytes(debate(newer, 1))
    passed_on = newer["RunEvent"].FromString(event_for_client(event).SerializeToString())
    assert (passed_on.debate.topic, passed_on.step, passed_on.state) == ("towers", "debate", b"")


@pytest.mark.parametrize("number", [1, 2, 3, 99], ids=["none", "idempotent", "once", "of a newer version"])
async def test_effect_of_an_unknown_class_is_not_taken_for_a_harmless_one(number: int) -> None:
    """An intent whose class this version does not know ends in doubt when the run does."""
    log, bank = MemoryLog(), Bank(forgetful=True)
    state = state_pb2.StepState(phase=state_pb2.STEP_PHASE_INTENT, effect=number)  # type: ignore[arg-type]
    intent = pb.RunEvent(run_id=KEY.run_id, seq=1, step="pay", state=state.SerializeToString())
    intent.tool.name = "transfer"
    log.events[KEY] = [event_from_bytes(intent.SerializeToString())]
    journal = await Journal.open(KEY, log, now)
    await Run(journal, STARTED).end(RunStatus.CANCELLED)
    (result,) = [event.payload for event in log.events[KEY] if type(event.payload).__name__ == "ToolResult"]
    assert result.error_reason == ("CANCELLED" if number in (1, 2) else "IN_DOUBT")  # type: ignore[union-attr]
    assert bank.made == {}


async def test_result_that_this_version_cannot_read_is_made_again(newer: dict[str, Any]) -> None:
    """The draft of a newer version, in words that this one does not have."""
    whole = list(await worked(DyingLog(), World(*NEWER).work))
    drafted = next(
        event for event in whole if event.step == "draft" and event.state and event.state.phase is StepPhase.RESULT
    )
    log, world = DyingLog(), World(*NEWER)
    message = event_to_proto(drafted)
    state = state_pb2.StepState.FromString(message.state)
    state.result = b'{"text": 7, "method": {"kind": "chorus"}}'
    message.state = state.SerializeToString()
    log.events[KEY] = [*whole[: drafted.seq - 1], event_from_bytes(message.SerializeToString())]
    events = await worked(log, world.work)
    assert only(events, Answer) == only(whole, Answer)


async def test_outcome_that_this_version_cannot_read_is_known_by_what_was_shown() -> None:
    log, bank = MemoryLog(), Bank()
    run = Run(await Journal.open(KEY, log, now), STARTED)
    await run.effect("pay", Transfer(bank, EffectClass.ONCE))
    message = event_to_proto(log.events[KEY][-1])
    state = state_pb2.StepState.FromString(message.state)
    state.result = b"<newer/>"
    message.state = state.SerializeToString()
    log.events[KEY][-1] = event_from_bytes(message.SerializeToString())
    other = Run(await Journal.open(KEY, log, now), STARTED)
    outcome = await other.effect("pay", Transfer(bank, EffectClass.ONCE))
    assert (outcome.ok, outcome.summary) == (True, "Done.")
    assert set(bank.made.values()) == {1}


async def test_damaged_entry_may_have_been_an_intent() -> None:
    """The call is asked for by its id before it is made, and not made when nobody knows."""
    damaged = RunEvent(KEY.run_id, 1, AT, Thinking("log", "x", Degradation("log", "EVENT_DAMAGED", "x")))
    for forgetful, expected in ((True, "IN_DOUBT"), (False, "")):
        log, bank = MemoryLog(), Bank(forgetful=forgetful)
        log.events[KEY] = [damaged]
        run = Run(await Journal.open(KEY, log, now), STARTED)
        outcome = await run.effect("pay", Transfer(bank, EffectClass.ONCE))
        assert outcome.error_reason == expected
        assert len(bank.asked) == 1
