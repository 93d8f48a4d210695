"""A Qdrant server over HTTP. Requests are checked against the models that Qdrant generates from its OpenAPI description, which
know every field and forbid all others; what they mean is computed by the in-memory mode of qdrant-client, which Qdrant keeps
equal to the server. Error bodies have the server's form, and longer answers are compressed for whoever takes that, as the server
does it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from pydantic import TypeAdapter, ValidationError
from qdrant_client import models
from qdrant_client.local.async_qdrant_local import AsyncQdrantLocal

from tests.doubles.http_double import LOOPBACK, HttpDouble, Recorded

_COMPRESSED_FROM_BYTES = 1024


class QdrantServer(HttpDouble):
    """`version` is what it says it is. With an `api_key` it refuses requests without it."""

    def __init__(self, version: str, api_key: str = "") -> None:
        super().__init__()
        self.version = version
        self.api_key = api_key
        self.update_status = "completed"
        self.compressed_count = 0
        self.payload_indexes: dict[str, Any] = {}
        self._local = AsyncQdrantLocal(":memory:")
        self._routes: dict[tuple[str, str], Callable[[str, Any], Awaitable[Any]]] = {
            ("GET", ""): self._collection,
            ("PUT", ""): self._create,
            ("DELETE", ""): self._remove,
            ("GET", "exists"): self._exists,
            ("PUT", "index"): self._index,
            ("PUT", "points"): self._upsert,
            ("POST", "points"): self._retrieve,
            ("POST", "points/delete"): self._delete,
            ("POST", "points/count"): self._count,
            ("POST", "points/scroll"): self._scroll,
            ("POST", "points/query/batch"): self._query,
            ("POST", "facet"): self._facet,
        }

    async def lose_everything(self) -> None:
        """As when an operator removes all collections."""
        self._local = AsyncQdrantLocal(":memory:")
        self.payload_indexes.clear()

    async def remove_alias(self, alias: str) -> None:
        removal = models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))
        await self._local.update_collection_aliases([removal])

    async def respond(self, request: Recorded) -> web.Response:
        response = await self._answered(request)
        is_long = len(response.text or "") > _COMPRESSED_FROM_BYTES
        if is_long and "gzip" in request.headers.get("accept-encoding", ""):
            response.enable_compression(web.ContentCoding.gzip)
            self.compressed_count += 1
        return response

    async def _answered(self, request: Recorded) -> web.Response:
        if self.api_key and request.headers.get("api-key") != self.api_key:
            return self.answer(401, "Must provide an API key or an Authorization bearer token")
        try:
            return await self._respond(request)
        except ValidationError as error:
            return self._error(400, f"Format error in JSON body: {error}")
        except ValueError as error:
            is_missing = "not found" in str(error)
            return self._error(404 if is_missing else 400, f"{'Not found' if is_missing else 'Wrong input'}: {error}")

    async def _respond(self, request: Recorded) -> web.Response:
        match request.path.strip("/").split("/", 2):
            case [""]:
                return self.answer(200, {"title": "qdrant - vector search engine", "version": self.version})
            case ["collections"]:
                return self._result(await self._local.get_collections())
            case ["aliases"]:
                return self._result(await self._local.get_aliases())
            case ["collections", "aliases"]:
                change = models.ChangeAliasesOperation(**request.body)
                return self._result(await self._local.update_collection_aliases(change.actions))
            case ["collections", collection, *rest]:
                answer = self._routes[request.method, "".join(rest)]
                return self._result(await answer(collection, request.body))
        raise ValueError(f"no such endpoint: {request.path}")

    async def _collection(self, collection: str, _: Any) -> Any:
        return await self._local.get_collection(collection)

    async def _exists(self, collection: str, _: Any) -> Any:
        return {"exists": await self._local.collection_exists(collection)}

    async def _create(self, collection: str, body: Any) -> Any:
        wanted = models.CreateCollection(**body)
        return await self._local.create_collection(collection, wanted.vectors, metadata=wanted.metadata)

    async def _remove(self, collection: str, _: Any) -> Any:
        return await self._local.delete_collection(collection)

    async def _index(self, collection: str, body: Any) -> Any:
        await self._local.get_collection(collection)
        index = models.CreateFieldIndex(**body)
        self.payload_indexes[index.field_name] = body["field_schema"]
        return self._updated()

    async def _upsert(self, collection: str, body: Any) -> Any:
        await self._local.upsert(collection, models.PointsList(**body).points)
        return self._updated()

    async def _retrieve(self, collection: str, body: Any) -> Any:
        asked = models.PointRequest(**body)
        return await self._local.retrieve(
            collection, asked.ids, asked.with_payload or False, asked.with_vector or False
        )

    async def _delete(self, collection: str, body: Any) -> Any:
        selector: Any = TypeAdapter(models.PointsSelector).validate_python(body)
        await self._local.delete(collection, selector)
        return self._updated()

    async def _count(self, collection: str, body: Any) -> Any:
        asked = models.CountRequest(**body)
        return await self._local.count(collection, asked.filter)

    async def _scroll(self, collection: str, body: Any) -> Any:
        asked = models.ScrollRequest(**body)
        points, next_page = await self._local.scroll(
            collection,
            asked.filter,
            asked.limit or 10,
            None,
            asked.offset,
            asked.with_payload or False,
            asked.with_vector or False,
        )
        return models.ScrollResult(points=points, next_page_offset=next_page)

    async def _query(self, collection: str, body: Any) -> Any:
        searches = models.QueryRequestBatch(**body).searches
        for search in searches:
            search.params = None  # the in-memory mode is always exact, and warns when told to be
        return await self._local.query_batch_points(collection, searches)

    async def _facet(self, collection: str, body: Any) -> Any:
        asked = models.FacetRequest(**body)
        self._must_be_indexed(asked.key)
        return await self._local.facet(collection, asked.key, asked.filter, asked.limit or 10)

    def _must_be_indexed(self, field: str) -> None:
        if field not in self.payload_indexes:
            raise ValueError(f"Index required but not found for {field!r}")

    def _updated(self) -> Any:
        return {"operation_id": 1, "status": self.update_status}

    def _result(self, result: Any) -> web.Response:
        plain = TypeAdapter(Any).dump_python(result, mode="json")
        return self.answer(200, {"result": plain, "status": "ok", "time": 0.001})

    def _error(self, status: int, reason: str) -> web.Response:
        return self.answer(status, {"status": {"error": reason}, "time": 0.001})


@asynccontextmanager
async def qdrant_server(
    version: str = "1.20.0", api_key: str = "", host: str = LOOPBACK
) -> AsyncIterator[QdrantServer]:
    server = QdrantServer(version, api_key)
    async with server.running(host):
        yield server
