"""An Elasticsearch server over HTTP: the endpoints that the adapter uses, strict about parameters and bodies. What is indexed is
searchable after a refresh only, and a request with a routing value sees the documents of that value only, as if each had a
shard of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from tests.doubles.elasticsearch_dsl import Document, Evaluator, Json, RequestRefused, check_document
from tests.doubles.http_double import HttpDouble, Recorded

_PARAMETERS = {
    "_bulk": {"routing", "filter_path"},
    "_msearch": {"routing"},
    "_search": set[str](),
    "_count": {"routing"},
    "_mget": {"routing"},
    "_refresh": set[str](),
    "_delete_by_query": {"routing", "conflicts", "refresh", "wait_for_completion"},
}
_SHARDS = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}


class ElasticsearchServer(HttpDouble):
    """`item_failures` are given, in order, to documents of bulk requests; `conflicts` counts documents that the next deletion
    finds rewritten under its hands."""

    content_type = "application/vnd.elasticsearch+json;compatible-with=9"

    def __init__(self, version: str, product: str = "Elasticsearch") -> None:
        super().__init__()
        self.version = version
        self.product = product
        self.templates: dict[str, Json] = {}
        self.indexes: set[str] = set()
        self.mappings: Json = {}
        self.settings: Json = {}
        self.item_failures: list[Json | None] = []
        self.conflicts = 0
        self.failed_shards = 0
        self._written: dict[tuple[str, str], Document] = {}
        self._searchable: dict[tuple[str, str], Document] = {}
        self._endpoints: dict[str, Callable[[Recorded], Json]] = {
            "_bulk": self._bulk,
            "_msearch": self._msearch,
            "_search": lambda request: self._search(request.body, None),
            "_count": self._count,
            "_mget": self._mget,
            "_refresh": lambda _: self.refresh(),
            "_delete_by_query": self._delete_by_query,
        }

    async def respond(self, request: Recorded) -> web.Response:
        try:
            self._check_media_type(request)
            return self.answer(200, self._respond(request))
        except RequestRefused as refusal:
            return self.answer(refusal.status, refusal.body)

    def answer(self, status: int, body: Any, **headers: str) -> web.Response:
        return super().answer(status, body, **{"x-elastic-product": self.product}, **headers)

    def lose_everything(self) -> None:
        """As when an operator removes the index."""
        self.indexes.clear()
        self._written.clear()
        self._searchable.clear()

    def refresh(self) -> Json:
        self._searchable = dict(self._written)
        return {"_shards": self._shards()}

    def _check_media_type(self, request: Recorded) -> None:
        major = int(self.version.split(".")[0])
        accepted = request.headers["accept"]
        if "compatible-with=9" not in accepted or major < 9:
            raise RequestRefused(400, "media_type_header_exception", "Invalid media-type value on headers [Accept]")

    def _respond(self, request: Recorded) -> Json:
        match request.path.strip("/").split("/"):
            case [""]:
                return {"name": "n", "version": {"number": self.version}, "tagline": "You Know, for Search"}
            case ["_index_template", name]:
                self.templates[name] = request.body
                return {"acknowledged": True}
            case [name]:
                return self._index(name, request)
            case [name, endpoint] if endpoint in self._endpoints:
                if endpoint == "_bulk" and name not in self.indexes:
                    self._make(name)  # as servers do unless they are told not to
                self._must_exist(name)
                unknown = set(request.query) - _PARAMETERS[endpoint]
                if unknown:
                    raise RequestRefused(400, "illegal_argument_exception", f"unrecognized parameters: {unknown}")
                return self._endpoints[endpoint](request)
        raise RequestRefused(400, "illegal_argument_exception", f"no handler found for uri [{request.path}]")

    def _index(self, name: str, request: Recorded) -> Json:
        if request.method == "DELETE":
            assert request.query == {"ignore_unavailable": "true"}
            self.indexes.difference_update(name.split(","))
            return {"acknowledged": True}
        if request.method == "GET":
            self._must_exist(name)
            return {name: {"mappings": self.mappings}}
        if name in self.indexes:
            raise RequestRefused(400, "resource_already_exists_exception", f"index [{name}] already exists")
        self._make(name)
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def _make(self, name: str) -> None:
        matching = [body for body in self.templates.values() if name in body["index_patterns"]]
        if matching:
            self.mappings, self.settings = matching[0]["template"]["mappings"], matching[0]["template"]["settings"]
        self.indexes.add(name)

    def _must_exist(self, name: str) -> None:
        if name not in self.indexes:
            raise RequestRefused(404, "index_not_found_exception", f"no such index [{name}]")

    def _bulk(self, request: Recorded) -> Json:
        routing = request.query.get("routing")
        pairs = zip(request.body[::2], request.body[1::2], strict=True)
        items = [{"index": self._index_document(action["index"]["_id"], routing, source)} for action, source in pairs]
        return {"errors": any("error" in item["index"] for item in items), "items": items}

    def _index_document(self, identifier: str, routing: str | None, source: Json) -> Json:
        scripted = self.item_failures.pop(0) if self.item_failures else None
        if scripted is not None:
            return scripted
        if routing is None:
            return {"status": 400, "error": {"type": "routing_missing_exception", "reason": f"[{identifier}]"}}
        try:
            check_document(self.mappings, source)
        except RequestRefused as refusal:
            return {"status": refusal.status, "error": {"type": refusal.kind, "reason": refusal.reason}}
        is_new = (routing, identifier) not in self._written
        self._written[routing, identifier] = Document(identifier, routing, source)
        return {"status": 201 if is_new else 200}

    def _msearch(self, request: Recorded) -> Json:
        headers, bodies = request.body[::2], request.body[1::2]
        assert all(header == {} for header in headers)
        return {"took": 1, "responses": [self._response(body, request.query.get("routing")) for body in bodies]}

    def _response(self, body: Json, routing: str | None) -> Json:
        try:
            return self._search(body, routing) | {"status": 200}
        except RequestRefused as refusal:
            return refusal.body

    def _search(self, body: Json, routing: str | None) -> Json:
        known = {"query", "size", "track_total_hits", "timeout", "sort", "aggs"}
        if unknown := set(body) - known:
            raise RequestRefused(400, "parsing_exception", f"unknown key {unknown}")
        if "aggs" in body:
            documents = list(self._searchable.values())
            if routing is not None:
                documents = [document for document in documents if document.routing == routing]
            if "query" in body:
                documents = [document for document, _ in self._evaluator(routing).found(body["query"])]
            aggregated = self._counted(body["aggs"], documents) or self._composite(body["aggs"], documents)
            hits = {"total": {"value": len(documents), "relation": "eq"}, "hits": []}
            return self._whole() | {"hits": hits, "aggregations": aggregated}
        found = self._evaluator(routing).found(body["query"])[: body.get("size", 10)]
        hits = [
            {"_id": document.identifier, "_score": score, "_source": self._kept(document)} for document, score in found
        ]
        return self._whole() | {"hits": {"hits": hits}}

    def _counted(self, aggregations: Json, documents: Sequence[Document]) -> Json:
        """Of filters and means; empty where there are others."""
        found: Json = {}
        evaluator = Evaluator(self.mappings, documents)
        for name, aggregation in aggregations.items():
            ((kind, asked),) = aggregation.items()
            if kind == "filters":
                buckets: list[Json] = [{"doc_count": len(evaluator.found(each))} for each in asked["filters"]]
                found[name] = {"buckets": buckets}
            elif kind == "avg":
                values = [document.source[asked["field"]] for document in documents]
                found[name] = {"value": sum(values) / len(values) if values else None}
        return found

    def _composite(self, aggregations: Json, documents: Sequence[Document]) -> Json:
        ((name, aggregation),) = aggregations.items()
        composite = aggregation["composite"]
        ((key, source),) = composite["sources"][0].items()
        field = source["terms"]["field"]
        values = sorted({value for document in documents for value in document.source[field]})
        after = composite.get("after", {}).get(key, "")
        page = [value for value in values if value > after][: composite["size"]]
        result: Json = {"buckets": [{"key": {key: value}, "doc_count": 1} for value in page]}
        return {name: result | ({"after_key": {key: page[-1]}} if page else {})}

    def _count(self, request: Recorded) -> Json:
        found = self._evaluator(request.query.get("routing")).found(request.body["query"])
        return {"count": len(found), "_shards": self._shards()}

    def _mget(self, request: Recorded) -> Json:
        routing = request.query["routing"]
        documents = [(identifier, self._written.get((routing, identifier))) for identifier in request.body["ids"]]
        return {
            "docs": [
                {"_id": identifier, "found": document is not None}
                | ({"_source": self._kept(document)} if document else {})
                for identifier, document in documents
            ]
        }

    def _delete_by_query(self, request: Recorded) -> Json:
        found = [document for document, _ in self._evaluator(request.query["routing"]).found(request.body["query"])]
        conflicts = min(self.conflicts, len(found))
        self.conflicts = 0
        for document in found[conflicts:]:
            self._written.pop((document.routing, document.identifier), None)
        if request.query["refresh"] == "true":
            self.refresh()
        counts = {"total": len(found), "deleted": len(found) - conflicts, "version_conflicts": conflicts}
        return {"took": 1, "timed_out": False, "failures": [], **counts}

    def _kept(self, document: Document) -> Json:
        """What the mapping says to keep of a document's source."""
        return {name: document.source[name] for name in self.mappings["_source"]["includes"]}

    def _evaluator(self, routing: str | None) -> Evaluator:
        documents = [d for d in self._searchable.values() if routing is None or d.routing == routing]
        return Evaluator(self.mappings, documents)

    def _whole(self) -> Json:
        return {"took": 1, "timed_out": False, "_shards": self._shards()}

    def _shards(self) -> Json:
        return _SHARDS | {"failed": self.failed_shards}


@asynccontextmanager
async def elasticsearch_server(
    version: str = "9.2.0", product: str = "Elasticsearch"
) -> AsyncIterator[ElasticsearchServer]:
    server = ElasticsearchServer(version, product)
    async with server.running():
        yield server


def error_body(kind: str, reason: str) -> dict[str, Any]:
    """What a server sends with a status that is not 2xx."""
    cause = {"type": kind, "reason": reason}
    return {"error": {"root_cause": [cause], **cause}}
