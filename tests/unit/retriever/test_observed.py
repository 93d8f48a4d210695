"""What operators see of the engines: a span and a measurement a call, whoever is asked and however it ends."""

from collections.abc import Iterator

import numpy as np
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind
from prometheus_client import REGISTRY

from kit.testing.telemetry import recorded_spans
from services.retriever.errors import IndexUnavailable
from services.retriever.indexes.observed import Engine, ObservedDense, ObservedLexical
from services.retriever.models import LexicalQuery, RevisionKey, SearchScope
from tests.unit.retriever.fakes import FakeDense, FakeLexical

SECRET = "hunter2"
SCOPE = SearchScope("acme", ("default",))


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    with recorded_spans() as exporter, trace.get_tracer("test").start_as_current_span("search"):
        yield exporter


def counted(name: str, engine: str, operation: str) -> float:
    return REGISTRY.get_sample_value(name, {"engine": engine, "operation": operation}) or 0.0


async def test_search_is_a_span_with_counts_and_without_the_query(spans: InMemorySpanExporter) -> None:
    lexical = ObservedLexical(FakeLexical(), Engine("elasticsearch", "groundwork"))
    before = counted("groundwork_retriever_engine_seconds_count", "lexical", "search")
    await lexical.search(SCOPE, [LexicalQuery(SECRET), LexicalQuery("b")], 10)
    (span,) = spans.get_finished_spans()
    assert (span.name, span.kind) == ("search elasticsearch", SpanKind.CLIENT)
    assert dict(span.attributes or {}) == {
        "db.system.name": "elasticsearch",
        "db.operation.name": "search",
        "db.collection.name": "groundwork",
        "db.operation.batch.size": 2,
        "db.response.returned_rows": 0,
    }
    assert SECRET not in span.to_json()
    assert counted("groundwork_retriever_engine_seconds_count", "lexical", "search") == before + 1


async def test_engine_of_this_process_is_no_client(spans: InMemorySpanExporter) -> None:
    dense = ObservedDense(FakeDense(), Engine("qdrant-edge"))
    await dense.search(SCOPE, np.zeros((1, 3), np.float32), 10)
    (span,) = spans.get_finished_spans()
    assert (span.name, span.kind) == ("search qdrant-edge", SpanKind.INTERNAL)


async def test_call_that_fails_is_counted_and_told_by_its_reason(spans: InMemorySpanExporter) -> None:
    failing = FakeDense(error=IndexUnavailable(f"cannot find {SECRET}", reason="ENGINE_AWAY"))
    dense = ObservedDense(failing, Engine("qdrant", "groundwork"))
    before = counted("groundwork_retriever_engine_errors_total", "dense", "count")
    with pytest.raises(IndexUnavailable):
        await dense.count(RevisionKey("acme", "d", "r"))
    (span,) = spans.get_finished_spans()
    assert span.status.description == "ENGINE_AWAY"
    assert SECRET not in span.to_json()
    assert counted("groundwork_retriever_engine_errors_total", "dense", "count") == before + 1
