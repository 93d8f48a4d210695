"""What a call leaves behind for operators: one line, one span, numbers; not what was said."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from kit.testing.telemetry import recorded_spans
from services.tools.errors import ToolError
from services.tools.models import Call
from tests.unit.tools.boxes import CALL, make_box

SECRET = "hunter2"


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    with recorded_spans() as exporter, trace.get_tracer("test").start_as_current_span("caller"):
        yield exporter


def counted(tool: str, outcome: str) -> float:
    return REGISTRY.get_sample_value("groundwork_tool_calls_total", {"tool": tool, "outcome": outcome}) or 0.0


async def give(count: int) -> int:
    return count


async def refuse(count: int) -> int:
    raise ToolError("not today", reason="NOT_TODAY")


async def away(count: int) -> int:
    raise ToolError("the search does not answer", reason="SEARCH_UNAVAILABLE")


async def breaks(count: int) -> int:
    raise RuntimeError(f"cannot log in with {SECRET}")


@pytest.mark.parametrize(
    ("function", "call", "tool", "label", "reason"),
    [
        (give, CALL, "probe", "ok", ""),
        (refuse, CALL, "probe", "refused", "NOT_TODAY"),
        (breaks, CALL, "probe", "failed", "TOOL_FAILED"),
        (away, CALL, "probe", "unavailable", "SEARCH_UNAVAILABLE"),
        (give, replace(CALL, arguments={"count": SECRET}), "probe", "refused", "INVALID_ARGUMENTS"),
        (give, replace(CALL, name=SECRET), "unknown", "refused", "TOOL_UNKNOWN"),
    ],
)
async def test_call_is_one_line_and_one_span_and_counted(
    spans: InMemorySpanExporter, function: Any, call: Call, tool: str, label: str, reason: str
) -> None:
    before = counted(tool, label)
    with capture_logs() as lines:
        await make_box(function).call(replace(call, call_id="run1/a"))
    assert counted(tool, label) == before + 1
    (line,) = [line for line in lines if line["event"] == "tool_called"]
    assert (line["tool"], line["outcome"], line["reason"], line["cached"]) == (tool, label, reason, False)
    assert (line["call_id"], line["duration_ms"] >= 0) == ("run1/a", True)
    (span,) = spans.get_finished_spans()
    attributes = dict(span.attributes or {})
    assert span.name == f"execute_tool {tool}"
    assert (attributes["gen_ai.tool.name"], attributes["groundwork.tool.outcome"]) == (tool, label)
    assert (attributes["groundwork.tool.reason"], attributes["groundwork.tool.cached"]) == (reason, False)
    assert span.status.is_ok == (label == "ok")


@pytest.mark.parametrize("call", [CALL, replace(CALL, arguments={"count": SECRET}), replace(CALL, name=SECRET)])
async def test_no_words_of_the_user_are_logged(spans: InMemorySpanExporter, call: Call) -> None:
    with capture_logs() as lines:
        await make_box(breaks).call(call)
    told = [line for line in lines if line["log_level"] != "debug"]
    assert told
    assert SECRET not in str(told)
    assert SECRET not in str([span.to_json() for span in spans.get_finished_spans()])


async def test_cached_result_is_counted_as_one() -> None:
    box = make_box(give, cacheable=True)
    await box.call(CALL)
    before = counted("probe", "cached")
    with capture_logs() as lines:
        await box.call(CALL)
    assert counted("probe", "cached") == before + 1
    assert [line["cached"] for line in lines] == [True]
