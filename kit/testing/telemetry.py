"""Spans in tests: those of this process, in memory, and those of other processes, by a collector over real OTLP."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as rpc
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@contextmanager
def recorded_spans() -> Iterator[InMemorySpanExporter]:
    """Records the spans of all tracers that are got within the block, whatever provider a test before has installed."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    before = trace._TRACER_PROVIDER  # the API lets a process set it once
    trace._TRACER_PROVIDER = provider
    try:
        yield exporter
    finally:
        trace._TRACER_PROVIDER = before
        provider.shutdown()


@dataclass(frozen=True)
class CollectedSpan:
    """One span as a collector sees it."""

    service: str
    name: str
    trace_id: str


@dataclass
class Collector(rpc.TraceServiceServicer):
    """An OTLP collector. `endpoint` is what GROUNDWORK_OTLP_ENDPOINT wants."""

    spans: list[CollectedSpan] = field(default_factory=list)
    endpoint: str = ""

    def Export(self, request: pb.ExportTraceServiceRequest, context: Any) -> pb.ExportTraceServiceResponse:  # noqa: ARG002, N802
        for resource in request.resource_spans:
            names = {each.key: each.value.string_value for each in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans.extend(
                    CollectedSpan(names["service.name"], span.name, span.trace_id.hex()) for span in scope.spans
                )
        return pb.ExportTraceServiceResponse()


@contextmanager
def collector() -> Iterator[Collector]:
    """Collects on a free port of the loopback while the block runs."""
    with ThreadPoolExecutor(2) as threads:
        server = grpc.server(threads)
        found = Collector()
        rpc.add_TraceServiceServicer_to_server(found, server)  # type: ignore[no-untyped-call] # generated
        found.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        try:
            yield found
        finally:
            server.stop(None).wait()
