"""What a live system tells of itself, to a collector, to Prometheus and in its logs: compared with a matrix of spans and metrics,
with the expressions of dashboards and alerts, and with the page that lists the metrics."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from kit.llm import FinishReason
from kit.testing.openai import Reply, scripted_model
from kit.testing.telemetry import CollectedSpan, Collector, collector
from services.orchestrator.log.events import RunStatus
from services.retriever.models import CacheOutcome
from tests.in_a_thread import in_a_thread
from tests.integration.api import Api, assert_complete
from tests.integration.conftest import UNHURRIED, Model
from tests.integration.scripting import calling
from tests.integration.system import Groundwork, running, wait_until
from tests.promql import Expression, Selector, expressions, grouping_labels, selectors
from tests.system.telemetry_matrix import METRICS, TRACES, MetricLine, SpanLine
from tests.system.test_keys import KEY
from tests.third_party_metrics import ALL

pytestmark = pytest.mark.integration

WORDS = "quokka lighthouse"
"""Of the document and of the questions: they must not get into any span or any line of a log."""
DOCUMENT = f"# The {WORDS}\n\nThe {WORDS} was built in 1889 by Ilse and is painted red and white.".encode()
QUESTION = f"When was the {WORDS} built?"
PLAIN = Reply([f"Bananas are blue and grow under the sea near {WORDS} one. ", "[1]"])
SEARCHING = calling(("search", {"queries": [f"when was the {WORDS} built"]}))
ANSWERING = Reply([f"The {WORDS} was built in 1889 by Ilse ", "[1]."])
TARGET_LABELS = {"instance", "job", "namespace", "pod", "le"}
"""What a scrape adds, and the bounds of histograms."""
PROBLEM = re.compile(r"4\d\d|5\d\d")
TENANTS = 50
WARM, AT_ONCE = 3, 5

Series = frozenset[tuple[str, str]]


@dataclass
class Scrape:
    """The metrics of all processes: by name the labels of each series, with the process, and their values."""

    series: dict[tuple[str, str, Series], float] = field(default_factory=dict)
    """By process, name and labels."""
    families: dict[str, set[str]] = field(default_factory=dict)
    """By name of a sample, the names of its labels, of those families too that have no series yet."""
    services: dict[str, str] = field(default_factory=dict)
    """By process, its service."""

    @classmethod
    def of(cls, system: Groundwork) -> "Scrape":
        scrape = cls()
        for name, process in system.state()["services"].items():
            if "ops_port" not in process or not process["ops_port"]:
                continue
            text = httpx.get(f"http://127.0.0.1:{process['ops_port']}/metrics", trust_env=False).text
            scrape.services[name] = process["service"]
            for family in text_string_to_metric_families(text):
                scrape.families.setdefault(family.name, set())
                for sample in family.samples:
                    scrape.families.setdefault(sample.name, set()).update(sample.labels)
                    scrape.series[name, sample.name, frozenset(sample.labels.items())] = sample.value
        return scrape

    def values_of(self, name: str, label: str) -> set[str]:
        return {dict(labels)[label] for _, each, labels in self.series if each == name and label in dict(labels)}

    def is_moved(self, line: MetricLine) -> bool:
        return any(
            self.services[process] == line.service and name == line.name and set(line.labels) <= labels and value > 0
            for (process, name, labels), value in self.series.items()
        )


@dataclass
class Observed:
    """A system that has done a little of everything."""

    system: Groundwork
    collected: Collector
    api: Api
    model: Model
    traces: dict[str, str]
    run_ids: dict[str, str]
    document_id: str


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Observed]:
    with collector() as collected, in_a_thread(scripted_model(PLAIN)) as (server, loop):
        model = Model(server, loop)
        provider = {
            "base_url": server.base_url,
            "api_key": "test",
            "models": {"scripted": {"context_tokens": 32_768, "prompt_usd": 1.0, "completion_usd": 2.0}},
        }
        settings = UNHURRIED | {
            "GROUNDWORK_OTLP_ENDPOINT": collected.endpoint,
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            "GROUNDWORK_AUTH": "api_keys",
            "GROUNDWORK_LLM_PROVIDERS": json.dumps({"scripted": provider}),
            "GROUNDWORK_VERIFY_JUDGE": "learned",
            "GROUNDWORK_INGEST_SWEEP_INTERVAL_S": "5",
        }
        folder = tmp_path_factory.mktemp("observed")
        with running(Groundwork(folder / "data", models_dir.absolute(), settings)) as system:
            (key,) = KEY.findall(system.printed())
            with _client(system, key) as api:
                yield _after_traffic(system, collected, api, model)


def _client(system: Groundwork, key: str) -> Any:
    http = httpx.Client(
        base_url=system.base_url, timeout=300, trust_env=False, headers={"Authorization": f"Bearer {key}"}
    )
    return _Opened(http)


class _Opened:
    """`with` gives the API and closes its client."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http

    def __enter__(self) -> Api:
        return Api(self._http)

    def __exit__(self, *_: object) -> None:
        self._http.close()


def _after_traffic(system: Groundwork, collected: Collector, api: Api, model: Model) -> Observed:
    traces, run_ids = {}, {}
    collection = api.new_collection()
    uploaded = api.send(collection, "tower.md", DOCUMENT)
    traces["upload"], document_id = uploaded.headers["X-Trace-Id"], uploaded.json()["document"]["id"]
    assert api.settled(document_id)["status"] == "ready"

    model.will(PLAIN)
    asked = api.http.post("/v1/qa", json={"question": QUESTION, "collection_ids": [collection]})
    assert asked.json()["status"] == "completed", asked.text
    traces["question"], run_ids["question"] = asked.headers["X-Trace-Id"], asked.headers["X-Run-Id"]

    model.will(SEARCHING, ANSWERING)
    thread_id = api.post("/v1/threads")["id"]
    body = {"message": QUESTION, "thread_id": thread_id, "collection_ids": [collection]}
    with api.http.stream("POST", "/v1/chat", json=body, headers={"Accept": "text/event-stream"}) as stream:
        traces["chat"], run_ids["chat"] = stream.headers["X-Trace-Id"], stream.headers["X-Run-Id"]
        stream.read()
    assert_complete(api.replay(run_ids["chat"]))

    api.search(collection, QUESTION)
    api.search(collection, QUESTION)
    api.http.get("/v1/documents/nowhere")
    deleted = api.http.delete(f"/v1/documents/{document_id}")
    assert deleted.is_success, deleted.text
    traces["deletion"] = deleted.headers["X-Trace-Id"]
    assert api.http.delete(f"/v1/threads/{thread_id}").is_success
    return Observed(system, collected, api, model, traces, run_ids, document_id)


@pytest.mark.parametrize("kind", TRACES)
def test_request_is_one_trace_with_a_span_for_each_hop(observed: Observed, kind: str) -> None:
    trace_id = observed.traces[kind]
    wait_until(
        lambda: not _missing(observed, trace_id, TRACES[kind]),
        "every service has told of its spans",
        more=lambda: _told(observed, trace_id, _missing(observed, trace_id, TRACES[kind])),
    )


def _missing(observed: Observed, trace_id: str, lines: list[SpanLine]) -> list[SpanLine]:
    spans = {span.span_id: span for span in observed.collected.spans if span.trace_id == trace_id}
    return [line for line in lines if not any(_is(line, span, spans) for span in spans.values())]


def _is(line: SpanLine, span: CollectedSpan, spans: Mapping[str, CollectedSpan]) -> bool:
    """Whether the span is what the line says; between it and the named parent may be others of the parent's service."""
    if span.service != f"groundwork-{line.service}" or not _named(line.name, span.name):
        return False
    if not set(line.attributes) <= span.attributes.keys():
        return False
    if line.parent is None:
        return not span.parent_id
    service, name = line.parent
    above = spans.get(span.parent_id)
    while above is not None and above.service == f"groundwork-{service}":
        if _named(name, above.name):
            return True
        above = spans.get(above.parent_id)
    return False


def _named(pattern: str, name: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def _told(observed: Observed, trace_id: str, missing: list[SpanLine]) -> str:
    spans = {span.span_id: span for span in observed.collected.spans if span.trace_id == trace_id}
    found = sorted(
        f"{span.service} {span.name!r} below {spans[span.parent_id].name if span.parent_id in spans else span.parent_id!r}"
        for span in spans.values()
    )
    return "\n".join(["missing:", *map(str, missing), "found:", *found])


def test_spans_hold_no_words_of_documents_or_questions_and_no_text_of_errors(observed: Observed) -> None:
    wait_until(lambda: bool(observed.collected.spans), "there are spans")
    for span in list(observed.collected.spans):
        told = f"{span.name} {span.attributes}"
        assert "quokka" not in told, told
        assert not span.events, f"{span.service} {span.name} has events, which may quote an error: {span.events}"
        assert len(span.name) < 120, span.name


def test_nobody_checks_health_in_a_trace(observed: Observed) -> None:
    observed.api.http.get("/readyz")
    assert not [span for span in observed.collected.spans if "Health" in span.name]


def test_metrics_moved(observed: Observed) -> None:
    def missing() -> list[MetricLine]:
        scrape = Scrape.of(observed.system)
        return [line for line in METRICS if not scrape.is_moved(line)]

    wait_until(lambda: not missing(), "all metrics have moved", more=lambda: "\n".join(map(str, missing())))


KNOWN_VALUES = {
    ("groundwork_runs_total", "status"): {status.value for status in RunStatus},
    ("groundwork_runs_total", "degraded"): {"yes", "no"},
    ("groundwork_retriever_cache_total", "outcome"): {outcome.value for outcome in CacheOutcome},
    ("groundwork_llm_calls_total", "outcome"): {
        *(reason.value for reason in FinishReason),
        *("failed", "rejected", "left_alone", "abandoned"),
    },
    ("groundwork_llm_calls_total", "provider"): {"yours"},
    ("groundwork_ingest_documents_total", "outcome"): {"ready", "failed"},
    ("groundwork_ingest_disagreements", "kind"): {"not_searchable"},
    ("groundwork_gateway_requests_total", "status"): {"500", "503"},
    ("groundwork_gateway_connections_cut_total", "reason"): {"refused", "evicted"},
    ("groundwork_reranker_unserved_requests_total", "reason"): {"queue_full", "abandoned", "failed"},
    ("groundwork_grpc_server_requests_total", "code"): {"INTERNAL", "UNKNOWN", "DATA_LOSS", "CANCELLED", "NOT_FOUND"},
    ("groundwork_grpc_client_requests_total", "code"): {"UNAVAILABLE"},
    ("groundwork_grpc_server_seconds_bucket", "method"): {
        "OrchestratorService/AttachRun",
        "IngestService/WatchDocuments",
    },
}
"""Values that a healthy system need not show, from the enumerations of the code or its words."""


def _wrong(scrape: Scrape, pages: Mapping[str, set[str]], expression: Expression) -> list[str]:
    """What the expression names and the system does not have."""
    found: list[str] = []
    labels = set(TARGET_LABELS)
    for selector in selectors(expression):
        known = _labels_of(scrape, pages, selector.metric)
        if known is None:
            found.append(f"{expression.place}: there is no metric {selector.metric}")
            continue
        labels |= known
        found += [f"{expression.place}: {problem}" for problem in _wrong_filters(scrape, known, selector)]
    unknown = grouping_labels(expression) - labels
    return found + [f"{expression.place}: no metric of it has the label {label}" for label in sorted(unknown)]


def _labels_of(scrape: Scrape, pages: Mapping[str, set[str]], metric: str) -> set[str] | None:
    if metric in ALL:
        return ALL[metric]
    if scrape.families.get(metric):
        return scrape.families[metric]
    base = re.sub(r"_(total|bucket|sum|count)$", "", metric)
    if base not in scrape.families and metric not in scrape.families:
        return None
    return pages.get(metric) or pages.get(base) or scrape.families.get(metric)


def _wrong_filters(scrape: Scrape, labels: set[str], selector: Selector) -> Iterator[str]:
    for label, values in selector.filters:
        if label not in labels | TARGET_LABELS:
            yield f"{selector.metric} has no label {label}"
        if selector.metric in ALL:
            continue
        known = scrape.values_of(selector.metric, label) | KNOWN_VALUES.get((selector.metric, label), set())
        for value in values:
            if not any(re.fullmatch(value, each) for each in known):
                yield f"{label} of {selector.metric} is never {value!r}, but one of {sorted(known)}"


def _documented() -> dict[str, set[str]]:
    """Labels by metric, from the page."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "metrics.md").read_text()
    rows = re.findall(r"^\| `(groundwork_\w+)` \| (\w+) \| (.*?) \|", page, flags=re.MULTILINE)
    found: dict[str, set[str]] = {}
    for name, kind, labels in rows:
        names = [name, *([f"{name}_{end}" for end in ("bucket", "sum", "count")] if kind == "histogram" else [])]
        for each in names:
            found[each] = set(re.findall(r"`(\w+)`", labels)) | ({"le"} if each.endswith("_bucket") else set())
    return found


def test_every_expression_names_metrics_and_labels_that_exist(observed: Observed) -> None:
    scrape, pages = Scrape.of(observed.system), _documented()
    wrong = [problem for expression in expressions() for problem in _wrong(scrape, pages, expression)]
    assert not wrong, "\n".join(wrong)


def test_the_page_of_metrics_lists_what_is_told_and_nothing_else(observed: Observed) -> None:
    scrape, pages = Scrape.of(observed.system), _documented()
    for _, name, labels in scrape.series:
        if name.startswith("groundwork_") and not name.endswith("_created"):
            assert dict(labels).keys() == pages[name], f"{name}: {sorted(dict(labels))} and {sorted(pages[name])}"
    families = {re.sub("_total$", "", name) for name in scrape.families}
    assert {re.sub("_(total|bucket|sum|count)$", "", name) for name in pages} <= {
        re.sub("_(bucket|sum|count)$", "", name) for name in families
    }


def test_lines_of_a_request_name_its_trace_tenant_and_run(observed: Observed) -> None:
    lines = _log_lines(observed.system)
    of_services: defaultdict[str, set[str]] = defaultdict(set)
    for line in lines:
        if line.get("trace_id") in observed.traces.values() and line["service"] != "gateway":
            assert line.get("tenant_id"), line
        for kind, run_id in observed.run_ids.items():
            if line.get("trace_id") == observed.traces[kind] and line["service"] not in ("gateway", "memory"):
                of_services[kind].add(line["service"])
                assert line.get("run_id") == run_id, line
        assert "quokka" not in json.dumps(line), line
    assert "tools" in of_services["chat"], "the tools service was told which run its call belongs to"
    worked = [line for line in lines if line.get("document_id") == observed.document_id]
    assert {line["event"] for line in worked} >= {"document_ready"}
    assert all(line.get("trace_id") and line.get("tenant_id") for line in worked), worked


def _log_lines(system: Groundwork) -> list[dict[str, Any]]:
    texts = [path.read_text("utf-8", "replace") for path in (system.data_dir / "logs").glob("*.log")]
    lines = [json.loads(line) for text in texts for line in text.splitlines() if line.startswith("{")]
    return [line for line in lines if "event" in line and "service" in line]


def test_series_do_not_grow_with_tenants_documents_and_runs(observed: Observed) -> None:
    observed.model.will(ANSWERING)
    ids: set[str] = set()
    for number in range(WARM):
        ids |= _as_a_tenant(observed, f"warm{number}")
    wait_until(lambda: _queue_is_empty(observed), "the queue is empty")
    before = Scrape.of(observed.system)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        ids.update(*threads.map(lambda number: _as_a_tenant(observed, f"tenant{number:02}"), range(TENANTS)))
    after = Scrape.of(observed.system)
    values = {value for _, _, labels in after.series for _, value in labels}
    assert not ids & values
    new = {(name, labels) for _, name, labels in after.series} - {(name, labels) for _, name, labels in before.series}
    assert len(new) < TENANTS, sorted(str(each) for each in new)


def _queue_is_empty(observed: Observed) -> bool:
    series = Scrape.of(observed.system).series
    return all(value == 0 for (_, name, _), value in series.items() if name == "groundwork_ingest_queue_depth")


def _as_a_tenant(observed: Observed, tenant_id: str) -> set[str]:
    """One document, one question and one thread of a tenant; whatever names them."""
    body = {"name": "t", "subject": f"user-{tenant_id}", "scopes": ["query", "ingest"], "tenant_id": tenant_id}
    made = observed.api.post("/v1/keys", body)
    with _client(observed.system, made["key"]) as api:
        collection = api.new_collection()
        document = api.ingest(collection, f"{tenant_id}.md", DOCUMENT)
        asked = api.http.post("/v1/qa", json={"question": QUESTION, "collection_ids": [collection]})
        assert asked.is_success, asked.text
        thread_id = api.post("/v1/threads")["id"]
    return {tenant_id, body["subject"], made["id"], collection, document["id"], asked.headers["X-Run-Id"], thread_id}
