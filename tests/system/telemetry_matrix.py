"""What a live system must tell of itself, as data: a line for each service and each way between two, for the traces of a few
requests, and a line for each metric that these must have moved."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SpanLine:
    """A span of a service, below a span of a service ("" where it is the first), with attributes."""

    service: str
    name: str
    parent: tuple[str, str] | None
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True)
class MetricLine:
    """A metric of a process, with labels, that is above zero."""

    service: str
    name: str
    labels: tuple[tuple[str, str], ...] = ()


def _method(service: str, method: str) -> str:
    return f"groundwork.{service}.v1.{service.capitalize()}Service/{method}"


_RPC = ("rpc.system.name", "rpc.method", "rpc.response.status_code")
_MODEL = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.usage.input_tokens")
_ENGINE = ("db.system.name", "db.operation.name")
_START_RUN = ("method", "OrchestratorService/StartRun")
_HTTP = ("http.request.method", "http.route", "http.response.status_code")
_MESSAGE = ("messaging.system", "messaging.destination.name", "messaging.operation.type")


def _call(caller: str, caller_span: str, callee: str, service: str, method: str) -> list[SpanLine]:
    """The two sides of a call, the caller's below `caller_span`."""
    name = _method(service, method)
    return [
        SpanLine(caller, name, (caller, caller_span), _RPC),
        SpanLine(callee, name, (caller, name), _RPC),
    ]


UPLOAD = [
    SpanLine("gateway", "POST /v1/collections/{collection_id}/documents", None, _HTTP),
    *_call("gateway", "POST /v1/collections/{collection_id}/documents", "ingest", "ingest", "UploadDocument"),
    SpanLine("ingest", "send OBJ_FILES", ("ingest", _method("ingest", "UploadDocument")), _MESSAGE),
    SpanLine("ingest", "send KV_DOCUMENTS", ("ingest", _method("ingest", "UploadDocument")), _MESSAGE),
    SpanLine("ingest", "send INGEST", ("ingest", _method("ingest", "UploadDocument")), _MESSAGE),
    SpanLine("ingest-worker", "process INGEST", ("ingest", _method("ingest", "UploadDocument")), _MESSAGE),
    SpanLine("ingest-worker", "read", ("ingest-worker", "process INGEST"), ("groundwork.document.chunks",)),
    SpanLine("ingest-worker", "fetch file", ("ingest-worker", "read")),
    SpanLine("ingest-worker", "embed", ("ingest-worker", "process INGEST")),
    SpanLine("ingest-worker", "embed batch", ("ingest-worker", "embed"), ("groundwork.embed.texts",)),
    *_call("ingest-worker", "embed batch", "reranker", "reranker", "Embed"),
    SpanLine("reranker", "embeddings *", ("reranker", _method("reranker", "Embed")), _MODEL),
    SpanLine("ingest-worker", "index", ("ingest-worker", "process INGEST")),
    *_call("ingest-worker", "index", "retriever", "retriever", "IndexChunks"),
    SpanLine("retriever", "write qdrant-edge", ("retriever", _method("retriever", "IndexChunks")), _ENGINE),
    SpanLine("retriever", "write tantivy", ("retriever", _method("retriever", "IndexChunks")), _ENGINE),
    SpanLine("retriever", "commit qdrant-edge", ("retriever", _method("retriever", "IndexChunks")), _ENGINE),
    SpanLine("retriever", "commit tantivy", ("retriever", _method("retriever", "IndexChunks")), _ENGINE),
    SpanLine("retriever", "send KV_ACTIVE_REVISIONS", ("retriever", _method("retriever", "IndexChunks")), _MESSAGE),
]
"""An upload, up to the worker's last step."""

QUESTION = [
    SpanLine("gateway", "POST /v1/qa", None, _HTTP),
    *_call("gateway", "POST /v1/qa", "orchestrator", "orchestrator", "StartRun"),
    SpanLine("orchestrator", "send KV_RUN_RECORDS", ("orchestrator", _method("orchestrator", "StartRun")), _MESSAGE),
    SpanLine("orchestrator", "run", ("orchestrator", _method("orchestrator", "StartRun")), ("groundwork.run.id",)),
    SpanLine("orchestrator", "send RUNS", ("orchestrator", "run"), _MESSAGE),
    SpanLine("orchestrator", "step answer", ("orchestrator", "run"), ("groundwork.step",)),
    SpanLine("orchestrator", "step retrieve", ("orchestrator", "step answer")),
    *_call("orchestrator", "step retrieve", "retriever", "retriever", "Search"),
    *_call("retriever", _method("retriever", "Search"), "reranker", "reranker", "Embed"),
    SpanLine("retriever", "search qdrant-edge", ("retriever", _method("retriever", "Search")), _ENGINE),
    SpanLine("retriever", "search tantivy", ("retriever", _method("retriever", "Search")), _ENGINE),
    SpanLine("orchestrator", "step draft", ("orchestrator", "step answer")),
    SpanLine("orchestrator", "chat scripted", ("orchestrator", "step draft"), (*_MODEL, "gen_ai.usage.output_tokens")),
    SpanLine("orchestrator", "verify", ("orchestrator", "step draft"), ("groundwork.verification.support",)),
    *_call("orchestrator", "step draft", "reranker", "reranker", "Rerank"),
    SpanLine("reranker", "rerank *", ("reranker", _method("reranker", "Rerank")), _MODEL[:3]),
]
"""A question whose model wrote what no passage carries, so that the documents are quoted instead."""

CHAT = [
    SpanLine("gateway", "POST /v1/chat", None, _HTTP),
    *_call("gateway", "POST /v1/chat", "orchestrator", "orchestrator", "StartRun"),
    SpanLine("orchestrator", "run", ("orchestrator", _method("orchestrator", "StartRun"))),
    *_call("orchestrator", "run", "memory", "memory", "AppendMessages"),
    SpanLine("memory", "send KV_THREADS", ("memory", _method("memory", "AppendMessages")), _MESSAGE),
    *_call("orchestrator", "step tools", "tools", "tools", "ListTools"),
    SpanLine("orchestrator", "chat scripted", ("orchestrator", "step model"), _MODEL),
    *_call("orchestrator", "step call", "tools", "tools", "CallTool"),
    SpanLine("tools", "execute_tool search", ("tools", _method("tools", "CallTool")), ("gen_ai.tool.name",)),
    *_call("tools", "execute_tool search", "retriever", "retriever", "Search"),
]
"""A message of a thread, whose model called a tool."""

DELETION = [
    SpanLine("gateway", "DELETE /v1/documents/{document_id}", None, _HTTP),
    *_call("gateway", "DELETE /v1/documents/{document_id}", "ingest", "ingest", "DeleteDocument"),
    *_call("ingest", _method("ingest", "DeleteDocument"), "retriever", "retriever", "DeleteDocument"),
    SpanLine("ingest", "send FORGET", ("ingest", _method("ingest", "DeleteDocument")), _MESSAGE),
    SpanLine("orchestrator", "process FORGET", ("ingest", _method("ingest", "DeleteDocument")), _MESSAGE),
]
"""The deletion of a document that answers have quoted."""

TRACES = {"upload": UPLOAD, "question": QUESTION, "chat": CHAT, "deletion": DELETION}

METRICS = [
    MetricLine("gateway", "groundwork_gateway_requests_total", (("route", "/v1/qa"), ("status", "200"))),
    MetricLine("gateway", "groundwork_gateway_uploaded_bytes_total"),
    MetricLine("gateway", "groundwork_grpc_client_requests_total", (_START_RUN, ("code", "OK"))),
    MetricLine(
        "orchestrator",
        "groundwork_grpc_server_requests_total",
        (_START_RUN, ("code", "OK")),
    ),
    MetricLine("orchestrator", "groundwork_runs_total", (("mode", "qa"), ("status", "completed"), ("degraded", "yes"))),
    MetricLine("orchestrator", "groundwork_degraded_runs_total", (("part", "llm"),)),
    MetricLine("orchestrator", "groundwork_run_step_seconds_count", (("step", "draft"),)),
    MetricLine("orchestrator", "groundwork_llm_calls_total", (("provider", "scripted"), ("outcome", "stop"))),
    MetricLine(
        "orchestrator",
        "groundwork_llm_tokens_total",
        (("operation", "answer"), ("kind", "completion")),
    ),
    MetricLine("orchestrator", "groundwork_llm_cost_usd_total", (("model", "scripted"),)),
    MetricLine("orchestrator", "groundwork_llm_first_delta_seconds_count", (("provider", "scripted"),)),
    MetricLine("orchestrator", "groundwork_requested_tool_calls_total"),
    MetricLine("orchestrator", "groundwork_queue_jobs_total", (("queue", "FORGET"), ("outcome", "done"))),
    MetricLine("orchestrator", "groundwork_nats_write_seconds_count", (("stream", "RUNS"),)),
    MetricLine("retriever", "groundwork_retriever_searches_total"),
    MetricLine("retriever", "groundwork_retriever_cache_total"),
    MetricLine(
        "retriever", "groundwork_retriever_engine_seconds_count", (("engine", "dense"), ("operation", "search"))
    ),
    MetricLine(
        "retriever", "groundwork_retriever_engine_seconds_count", (("engine", "lexical"), ("operation", "search"))
    ),
    MetricLine("retriever", "groundwork_retriever_engine_up", (("engine", "dense"),)),
    MetricLine("retriever", "groundwork_retriever_indexed_chunks_total"),
    MetricLine("reranker", "groundwork_reranker_tokens_total", (("lane", "passage"),)),
    MetricLine("reranker", "groundwork_reranker_model_info", (("task", "embedding"),)),
    MetricLine("ingest", "groundwork_grpc_server_requests_total", (("method", "IngestService/UploadDocument"),)),
    MetricLine("ingest", "groundwork_nats_write_seconds_count", (("stream", "INGEST"),)),
    MetricLine("ingest-worker", "groundwork_queue_jobs_total", (("queue", "INGEST"), ("outcome", "done"))),
    MetricLine("ingest-worker", "groundwork_queue_wait_seconds_count", (("queue", "INGEST"),)),
    MetricLine("ingest-worker", "groundwork_ingest_documents_total", (("outcome", "ready"),)),
    MetricLine("ingest-worker", "groundwork_ingest_stage_seconds_total", (("stage", "embed"),)),
    MetricLine("memory", "groundwork_memory_messages_total", (("role", "user"),)),
    MetricLine("memory", "groundwork_queue_jobs_total", (("queue", "MEMORY"), ("outcome", "done"))),
    MetricLine("tools", "groundwork_tool_calls_total", (("tool", "search"), ("outcome", "ok"))),
    MetricLine("tools", "groundwork_tool_seconds_count", (("tool", "search"),)),
    *(
        MetricLine(service, name)
        for service in (
            "gateway",
            "orchestrator",
            "retriever",
            "reranker",
            "ingest",
            "ingest-worker",
            "memory",
            "tools",
        )
        for name in ("groundwork_ready", "groundwork_event_loop_lag_seconds_count", "process_resident_memory_bytes")
    ),
]
