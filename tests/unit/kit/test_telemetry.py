"""Spans: whose they are, what they tell of errors, and that none is made where nobody records."""

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from kit.errors import Unavailable
from kit.observability.telemetry import begun_span, continued_span, current_trace_id, current_traceparent, span
from kit.testing.telemetry import recorded_spans

SECRET = "hunter2"
OTHER = f"00-{'b' * 32}-{'2' * 16}-01"


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    with recorded_spans() as exporter:
        yield exporter


def test_span_is_a_part_of_the_one_in_hand(spans: InMemorySpanExporter) -> None:
    with continued_span("request", "") as request, span("step", {"groundwork.step": "plan"}) as step:
        assert trace.get_current_span() is step
    done = {each.name: each for each in spans.get_finished_spans()}
    assert done["step"].parent == request.get_span_context()
    assert dict(done["step"].attributes or {}) == {"groundwork.step": "plan"}
    assert done["request"].parent is None


def test_without_one_in_hand_none_is_made(spans: InMemorySpanExporter) -> None:
    with span("step") as step:
        step.set_attribute("kept", False)
    begun_span("call").end()
    assert not spans.get_finished_spans()


def test_work_goes_on_in_the_trace_that_was_kept_with_it_and_links_others(spans: InMemorySpanExporter) -> None:
    with continued_span("request", ""):
        kept = current_traceparent()
    with continued_span("job", kept, links=[OTHER, "not a traceparent"]):
        assert current_traceparent()[:35] == kept[:35]
    (job,) = [each for each in spans.get_finished_spans() if each.name == "job"]
    assert job.parent is not None
    assert f"{job.parent.span_id:016x}" == kept.split("-")[2]
    assert [f"{link.context.span_id:016x}" for link in job.links] == ["2" * 16]


@pytest.mark.parametrize(
    "traceparent", ["", "nonsense", f"00-{'0' * 32}-{'0' * 16}-01", f"00-{'a' * 31}-{'1' * 16}-01"]
)
def test_what_is_no_traceparent_begins_a_trace_of_its_own(spans: InMemorySpanExporter, traceparent: str) -> None:
    with continued_span("request", traceparent):
        assert set(current_trace_id()) != {"0"}
    (request,) = spans.get_finished_spans()
    assert request.parent is None


def test_trace_that_nobody_records_keeps_its_id_and_costs_no_span(spans: InMemorySpanExporter) -> None:
    with continued_span("request", f"00-{'a' * 32}-{'1' * 16}-00"), span("step"):
        assert current_trace_id() == "a" * 32
        assert current_traceparent() == f"00-{'a' * 32}-{'1' * 16}-00"
    assert not spans.get_finished_spans()


def test_process_without_a_collector_has_trace_ids_and_makes_no_spans_below_the_first() -> None:
    tracer = TracerProvider(sampler=ALWAYS_OFF).get_tracer("test")
    with tracer.start_as_current_span("request"), span("step") as step:
        assert step is trace.INVALID_SPAN
        assert set(current_trace_id()) != {"0"}


@pytest.mark.parametrize(
    ("error", "told"),
    [(Unavailable(f"no {SECRET}", reason="STORE_AWAY"), "STORE_AWAY"), (ValueError(SECRET), "ValueError")],
)
def test_error_is_told_by_its_reason_or_type_alone(spans: InMemorySpanExporter, error: Exception, told: str) -> None:
    with pytest.raises(type(error)), continued_span("request", ""):
        raise error
    (failed,) = spans.get_finished_spans()
    assert (failed.status.description, (failed.attributes or {})["error.type"]) == (told, told)
    assert not failed.events
    assert SECRET not in failed.to_json()
