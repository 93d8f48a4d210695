"""Spans in tests: those of this process, in memory, and those of other processes, by a collector over real OTLP."""

from collections.abc import Iterator, Mapping
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
    span_id: str
    parent_id: str
    """Empty of the first of its trace."""
    attributes: Mapping[str, Any] = field(compare=False)
    events: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    """Span ids."""


@dataclass
class Collector(rpc.TraceServiceServicer):
    """An OTLP collector. `endpoint` is what GROUNDWORK_OTLP_ENDPOINT wants."""

    spans: list[CollectedSpan] = field(default_factory=list)
    endpoint: str = ""

    def Export(self, request: pb.ExportTraceServiceRequest, context: Any) -> pb.ExportTraceServiceResponse:  # noqa: ARG002, N802
        for resource in request.resource_spans:
            names = {each.key: each.value.string_value for each in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans.extend(_collected(names["service.name"], span) for span in scope.spans)
        return pb.ExportTraceServiceResponse()


def _collected(service: str, span: Any) -> CollectedSpan:
    return CollectedSpan(
        service,
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        {each.key: _plain(each.value) for each in span.attributes},
        tuple(event.name for event in span.events),
        tuple(link.span_id.hex() for link in span.links),
    )


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_plain(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, kind)


@contextmanager
def collector(credentials: grpc.ServerCredentials | None = None) -> Iterator[Collector]:
    """Collects on a free port of the loopback while the block runs; with `credentials` over TLS."""
    with ThreadPoolExecutor(2) as threads:
        server = grpc.server(threads)
        found = Collector()
        rpc.add_TraceServiceServicer_to_server(found, server)  # type: ignore[no-untyped-call] # generated
        place = "127.0.0.1:0"
        port = server.add_secure_port(place, credentials) if credentials else server.add_insecure_port(place)
        found.endpoint = f"{'https' if credentials else 'http'}://127.0.0.1:{port}"
        server.start()
        try:
            yield found
        finally:
            server.stop(None).wait()
