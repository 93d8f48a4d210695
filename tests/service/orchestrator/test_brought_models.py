"""A model that a user brings with a question: asked by whoever works on the run, seen by nobody else, gone at the end."""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import replace

import pytest
from groundwork.orchestrator.v1 import orchestrator_pb2 as pb
from nats.js.errors import NotFoundError
from pydantic import SecretStr
from structlog.testing import capture_logs

from kit.access.keys import KeySource, new_key, parse_signing_key
from kit.access.sealing import Sealer
from kit.errors import Unavailable
from kit.jetstream import KeyValue, Nats
from kit.jetstream.streams import stream_names
from kit.llm import Finish, FinishReason, TextDelta
from kit.llm.brought import BroughtModel
from kit.network.egress import AddressRefused, UrlRefused
from kit.stores.forgetting import ForgetRequest, Source
from services.orchestrator.errors import InvalidRequest, ThreadForgotten
from services.orchestrator.handlers import _brought, _request
from services.orchestrator.log.events import Answer, RunEvent, Thinking
from services.orchestrator.models import BroughtName, RunRequest
from services.orchestrator.runs.forgetting import CUT_OFF_AFTER
from tests.service.orchestrator.conftest import ANN, QUESTION, Orchestrator, collect, now
from tests.unit.kit.llm_fakes import Script, models_of, says
from tests.unit.orchestrator.serving import document_modes, mode_services

StartOrchestrator = Callable[..., Awaitable[Orchestrator]]
SECRET = "sk-very-secret"
MINE = BroughtModel("https://8.8.8.8/v1", SecretStr(SECRET), "mine")
REQUEST = RunRequest(QUESTION.mode, QUESTION.question, QUESTION.collection_ids, model_credentials=BroughtName("mine"))
ANSWER = "The tower was built in 1889 [1]."


async def everything_stored(nats: Nats) -> bytes:
    """The bytes of all messages of all streams."""
    found = b""
    for stream in await stream_names(nats):
        state = (await nats.js.stream_info(stream)).state
        for seq in range(max(1, state.first_seq), state.last_seq + 1):
            with suppress(NotFoundError):
                message = await nats.js.get_msg(stream, seq)
                found += (message.subject or "").encode() + (message.data or b"")
    return found


def answer_of(events: list[RunEvent]) -> Answer:
    return next(event.payload for event in events if isinstance(event.payload, Answer))


async def until_no_model_is_kept(nats: Nats) -> None:
    bucket = await KeyValue.open(nats, "MODEL_CREDENTIALS", ttl_s=600.0)
    async with asyncio.timeout(60):
        while [entry async for entry in bucket.entries(">")]:
            await asyncio.sleep(0.01)


async def test_a_run_asks_the_brought_model_whose_key_is_nowhere_to_be_read(
    start_orchestrator: StartOrchestrator, jetstream: Nats
) -> None:
    seen: list[bytes] = []
    gate = asyncio.Event()
    script = Script({"yours/mine": [[TextDelta(ANSWER), gate, Finish(FinishReason.STOP)]]})
    logs: list[MutableMapping[str, object]]
    with capture_logs() as logs:
        async with models_of(script, None) as models:
            orchestrator = await start_orchestrator(models)
            _, stream = await orchestrator.runs.start(ANN, REQUEST, model=MINE)
            async with asyncio.timeout(60):
                while not script.asked:
                    await asyncio.sleep(0.01)
            seen.append(await everything_stored(jetstream))
            gate.set()
            events = await collect(stream)
    assert (answer_of(events).text, answer_of(events).method) == (ANSWER, "model")
    assert script.opened[0].api_key.get_secret_value() == SECRET
    assert b"$KV.MODEL_CREDENTIALS." in seen[0]
    assert SECRET.encode() not in seen[0]
    assert SECRET not in repr(events)
    assert SECRET not in repr(logs)
    await until_no_model_is_kept(jetstream)


async def test_another_orchestrator_takes_the_run_over_with_its_model(
    start_orchestrator: StartOrchestrator, jetstream: Nats
) -> None:
    script = Script({"yours/mine": [[asyncio.Event()], says(ANSWER)]})
    async with models_of(script, None) as models:
        first = await start_orchestrator(models)
        key, _ = await first.runs.start(ANN, REQUEST, model=MINE)
        async with asyncio.timeout(60):
            while not script.asked:
                await asyncio.sleep(0.01)
        await first.die()
        second = await start_orchestrator(models)
        events = await collect(second.runs.attach(key, 0))
    assert answer_of(events).method == "model"
    assert script.asked == ["yours/mine"] * 2
    await until_no_model_is_kept(jetstream)


async def test_a_model_that_cannot_be_read_any_more_is_said_and_no_other_is_asked(
    start_orchestrator: StartOrchestrator,
) -> None:
    script = Script({"yours/mine": [[asyncio.Event()]]})
    other = Sealer(KeySource(parse_signing_key, value=json.dumps(new_key("other")), setting="TEST"))
    async with models_of(script, None) as models:
        first = await start_orchestrator(models)
        key, _ = await first.runs.start(ANN, REQUEST, model=MINE)
        async with asyncio.timeout(60):
            while not script.asked:
                await asyncio.sleep(0.01)
        await first.die()
        second = await start_orchestrator(models, sealer=other)
        events = await collect(second.runs.attach(key, 0))
    said = [event.payload.degraded for event in events if isinstance(event.payload, Thinking)]
    assert "BROUGHT_MODEL_GONE" in [each.reason for each in said if each]
    assert answer_of(events).method == "extractive"
    assert script.asked == ["yours/mine"]


async def test_the_model_of_a_run_that_lost_its_log_is_forgotten(
    start_orchestrator: StartOrchestrator, jetstream: Nats
) -> None:
    script = Script({"yours/mine": [says(ANSWER)]})
    async with models_of(script, None) as models:
        orchestrator = await start_orchestrator(models)
        log = orchestrator.runs._log
        append = log.append

        async def fails_once(*args: object) -> int:
            log.append = append  # type: ignore[method-assign]
            raise Unavailable("the log went away for a moment")

        log.append = fails_once  # type: ignore[method-assign,assignment]
        _, stream = await orchestrator.runs.start(ANN, REQUEST, model=MINE)
        await collect(stream)
        await until_no_model_is_kept(jetstream)


async def test_the_model_of_a_run_that_is_cut_off_by_its_deletion_is_forgotten(
    start_orchestrator: StartOrchestrator, jetstream: Nats
) -> None:
    gate = asyncio.Event()
    script = Script({"yours/mine": [[TextDelta(ANSWER), gate, Finish(FinishReason.STOP)]]})
    async with models_of(script, None) as models:
        orchestrator = await start_orchestrator(models)
        key, _ = await orchestrator.runs.start(ANN, REQUEST, model=MINE)
        async with asyncio.timeout(60):
            while not script.asked:
                await asyncio.sleep(0.01)
        orchestrator.runs._executions.cancel = lambda _: None  # type: ignore[method-assign] # it hangs
        request = ForgetRequest(Source.run(key.run_id), now() - CUT_OFF_AFTER)
        assert await orchestrator.forgetting.forget("acme", request) is None
        await until_no_model_is_kept(jetstream)
        gate.set()


async def test_the_model_of_a_run_that_is_refused_is_not_kept(
    start_orchestrator: StartOrchestrator, jetstream: Nats
) -> None:
    orchestrator = await start_orchestrator()
    await orchestrator.runs._sources.mark_forgotten("acme", Source.thread(ANN.subject, "t1"))
    with pytest.raises(ThreadForgotten):
        await orchestrator.runs.start(ANN, replace(REQUEST, thread_id="t1"), model=MINE)
    bucket = await KeyValue.open(jetstream, "MODEL_CREDENTIALS", ttl_s=600.0)
    assert await bucket.keys(">") == []


@pytest.mark.parametrize(
    ("model", "error"),
    [
        (BroughtModel("http://169.254.169.254/v1", SecretStr(""), "m"), AddressRefused),
        (BroughtModel("http://localhost:8000/v1", SecretStr(""), "m"), AddressRefused),
        (BroughtModel("http://0x7f000001/v1", SecretStr(""), "m"), UrlRefused),
        (BroughtModel("", SecretStr(""), "m", "ollama"), AddressRefused),  # its address is this machine
        (BroughtModel("", SecretStr(""), "m"), InvalidRequest),
        (BroughtModel("https://8.8.8.8/v1", SecretStr(""), ""), InvalidRequest),
        (BroughtModel("https://8.8.8.8/v1?key=k", SecretStr(""), "m"), InvalidRequest),
        (BroughtModel("https://8.8.8.8/v1", SecretStr(""), "m", "gpt"), InvalidRequest),
        (BroughtModel("https://8.8.8.8/v1", SecretStr("k\r\nHost: other"), "m"), InvalidRequest),
        (BroughtModel("https://8.8.8.8/v1", SecretStr("k" * 2001), "m"), InvalidRequest),
    ],
)
async def test_an_address_or_name_that_cannot_be_is_refused_before_there_is_a_run(
    model: BroughtModel, error: type[Exception], start_orchestrator: StartOrchestrator, jetstream: Nats
) -> None:
    orchestrator = await start_orchestrator()
    with pytest.raises(error):
        await orchestrator.runs.start(ANN, REQUEST, model=model)
    assert not (await orchestrator.runs.list("acme", 10, "")).runs
    await until_no_model_is_kept(jetstream)


def test_the_request_that_is_kept_names_the_model_and_nothing_else() -> None:
    given = pb.ModelCredentials(base_url="https://8.8.8.8/v1", api_key=SECRET, model="mine", preset="openai")
    message = pb.StartRunRequest(mode=pb.RUN_MODE_QA, question="?", model_credentials=given)
    request = _request(message, document_modes(mode_services()))
    assert request.model_credentials == BroughtName("mine", "openai")
    assert SECRET not in repr(request) + repr(_brought(message))
