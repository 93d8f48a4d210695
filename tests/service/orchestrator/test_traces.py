"""What a run does belongs to the trace of the request that asked, whoever does it."""

from collections.abc import Awaitable, Callable, Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from kit.testing.telemetry import recorded_spans
from services.orchestrator.log.events import Done, RunStatus
from tests.service.orchestrator.conftest import ANN, LEASE_S, QUESTION, Orchestrator, collect
from tests.service.orchestrator.test_runs import GatedModel, _has_status, _open_model, until

Start = Callable[..., Awaitable[Orchestrator]]


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    with recorded_spans() as exporter:
        yield exporter


def runs_among(spans: InMemorySpanExporter) -> list[ReadableSpan]:
    return [span for span in spans.get_finished_spans() if span.name == "run"]


async def test_run_is_a_span_of_the_request_that_started_it(
    start_orchestrator: Start, spans: InMemorySpanExporter
) -> None:
    orchestrator = await start_orchestrator()
    with trace.get_tracer("test").start_as_current_span("request") as request:
        key, events = await orchestrator.runs.start(ANN, QUESTION)
    assert isinstance((await collect(events))[-1].payload, Done)
    await until(lambda: _ended(spans, 1))
    (run,) = runs_among(spans)
    assert run.parent is not None
    assert run.parent.span_id == request.get_span_context().span_id
    assert run.context is not None
    assert run.context.trace_id == request.get_span_context().trace_id
    assert dict(run.attributes or {}) == {
        "groundwork.run.id": key.run_id,
        "groundwork.run.mode": "qa",
        "groundwork.run.resumed": False,
        "groundwork.run.ending": "settled",
    }


async def test_run_that_is_taken_over_goes_on_in_its_trace(
    start_orchestrator: Start, spans: InMemorySpanExporter
) -> None:
    model = GatedModel()
    first, second = await start_orchestrator(model), await start_orchestrator(_open_model())
    with trace.get_tracer("test").start_as_current_span("request") as request:
        key, _ = await first.runs.start(ANN, QUESTION)
    await model.speaking.wait()
    await first.die()
    await until(lambda: _has_status(second, key, RunStatus.COMPLETED), seconds=20 * LEASE_S)
    await until(lambda: _ended(spans, 2))
    runs = runs_among(spans)
    assert [dict(run.attributes or {})["groundwork.run.resumed"] for run in runs] == [False, True]
    assert {run.context.trace_id for run in runs if run.context} == {request.get_span_context().trace_id}


async def _ended(spans: InMemorySpanExporter, count: int) -> bool:
    return len(runs_among(spans)) == count
