"""What the adapter says to an Elasticsearch server when it makes an index, word for word."""

from __future__ import annotations

import pytest

from services.retriever.adapters.elasticsearch.index import ElasticsearchIndex
from services.retriever.errors import EngineUnsupported
from services.retriever.options import ElasticsearchOptions
from tests.contract.retriever_index_contract import KEY, store
from tests.doubles.elasticsearch import ElasticsearchServer, error_body
from tests.doubles.http_double import Failure
from tests.unit.retriever.elasticsearch.specification import check_mapping


class TestCreation:
    async def test_the_template_comes_before_the_index(self, server: ElasticsearchServer) -> None:
        options = ElasticsearchOptions((server.url,), index="shop", shards=3, replicas=2)
        await (await ElasticsearchIndex.open(options)).close()
        paths = [(request.method, request.path) for request in server.requests]
        assert paths == [
            ("GET", "/"),
            ("GET", "/shop-v5"),
            ("PUT", "/_index_template/shop"),
            ("PUT", "/shop-v5"),
            ("GET", "/shop-v5"),
        ]
        template = server.requests[2].body
        assert (template["index_patterns"], template["priority"], template["version"]) == (["shop-v5"], 500, 5)
        assert template["template"]["settings"]["index"] == {
            "number_of_shards": 3,
            "number_of_replicas": 2,
            "refresh_interval": "30s",
            "translog": {"durability": "request"},
        }

    async def test_the_mapping_knows_every_field_and_takes_no_other(self, server: ElasticsearchServer) -> None:
        await (await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))).close()
        mappings = server.mappings
        assert (mappings["dynamic"], mappings["_routing"]) == ("strict", {"required": True})
        properties = mappings["properties"]
        assert properties["write"] == {"type": "keyword"}  # aggregated over
        for field in ("tenant", "collection", "document", "revision", "chunk", "metadata"):
            assert properties[field] == {"type": "keyword", "doc_values": False}
        assert properties["date"] == {"type": "long"}
        assert properties["ordinal"] == {"type": "integer", "doc_values": False}
        assert mappings["_source"] == {"includes": ["stored", "terms"]}
        for field in ("stored", "terms"):
            assert properties[field] == {"type": "object", "enabled": False}
        for field in ("text_length", "title_length"):  # their means are asked for
            assert properties[field] == {"type": "integer", "index": False}
        for field in ("text", "title", "exact"):  # terms are made before they are sent
            assert properties[field] == {"type": "text", "analyzer": "whitespace"}

    async def test_every_parameter_of_the_mapping_is_in_the_servers_specification(
        self, server: ElasticsearchServer
    ) -> None:
        await (await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))).close()
        check_mapping(server.mappings["properties"])

    async def test_another_process_may_create_at_once(self, server: ElasticsearchServer) -> None:
        first = await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))
        server.failures.append(
            Failure("GET /groundwork-v5", 404, error_body("index_not_found_exception", "no such index"))
        )
        second = await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))
        assert await store(second, KEY, ["solar"]) == 1
        await first.close()
        await second.close()

    async def test_indexes_of_earlier_formats_stay_until_they_are_dropped(self, server: ElasticsearchServer) -> None:
        server.indexes |= {"groundwork-v1", "groundwork-v10", "other-v1"}
        index = await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))
        assert "groundwork-v1" in server.indexes
        await index.drop_outdated()
        assert server.indexes == {"groundwork-v5", "groundwork-v10", "other-v1"}
        await index.drop_outdated()
        await index.close()

    async def test_an_index_of_another_format_is_refused(self, server: ElasticsearchServer) -> None:
        await (await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))).close()
        server.mappings["_meta"] = {"groundwork_format": 0}
        with pytest.raises(EngineUnsupported, match="has a mapping of format 0 and not 5: remove it"):
            await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))
