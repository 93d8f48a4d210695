"""What the adapter says to an Elasticsearch server when it makes an index, word for word."""

from __future__ import annotations

import pytest

from services.retriever.adapters.elasticsearch import ElasticsearchIndex
from services.retriever.errors import EngineUnsupported, IndexUnavailable
from services.retriever.options import ElasticsearchOptions
from tests.contract.retriever_index_contract import KEY, store
from tests.doubles.elasticsearch import ElasticsearchServer, error_body
from tests.doubles.http_double import Failure
from tests.unit.retriever.elasticsearch.specification import check_mapping


class TestCreation:
    async def test_the_template_comes_first_and_the_alias_with_the_index(self, server: ElasticsearchServer) -> None:
        options = ElasticsearchOptions((server.url,), index="shop", shards=3, replicas=2)
        await (await ElasticsearchIndex.open(options)).close()
        paths = [(request.method, request.path) for request in server.requests]
        assert paths == [
            ("GET", "/"),
            ("GET", "/shop"),
            ("PUT", "/_index_template/shop"),
            ("PUT", "/shop-v1"),
            ("GET", "/shop"),
        ]
        template, created = server.requests[2].body, server.requests[3].body
        assert created == {"aliases": {"shop": {}}}
        assert (template["index_patterns"], template["priority"], template["version"]) == (["shop-v1"], 500, 1)
        settings = template["template"]["settings"]["index"]
        assert {name: settings[name] for name in settings if name != "analysis"} == {
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
        assert properties["stored"] == {"type": "object", "enabled": False}
        assert properties["exact"] == {"type": "text", "analyzer": "whitespace"}
        analysers = server.settings["index"]["analysis"]["analyzer"]
        for language, mapped in properties["text"]["properties"].items():
            assert mapped == properties["title"]["properties"][language]
            assert mapped["type"] == "text"
            assert mapped["analyzer"] in analysers

    async def test_every_part_of_an_analyser_is_defined_or_the_servers_own(self, server: ElasticsearchServer) -> None:
        await (await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))).close()
        analysis = server.settings["index"]["analysis"]
        for analyser in analysis["analyzer"].values():
            assert analyser["type"] == "custom"
            assert analyser["tokenizer"] in analysis["tokenizer"]
            assert set(analyser["filter"]) <= {"lowercase", "asciifolding", "arabic_normalization"} | set(
                analysis["filter"]
            )
        used = {name for analyser in analysis["analyzer"].values() for name in analyser["filter"]}
        assert set(analysis["filter"]) <= used

    async def test_every_parameter_of_the_mapping_is_in_the_servers_specification(
        self, server: ElasticsearchServer
    ) -> None:
        await (await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))).close()
        check_mapping(server.mappings["properties"])

    async def test_another_process_may_create_at_once(self, server: ElasticsearchServer) -> None:
        first = await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))
        server.failures.append(
            Failure("GET /groundwork", 404, error_body("index_not_found_exception", "no such index"))
        )
        second = await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))
        assert await store(second, KEY, ["solar"]) == 1
        await first.close()
        await second.close()

    async def test_an_index_that_lost_its_alias_is_said(self, server: ElasticsearchServer) -> None:
        server.aliases["some-other-alias"] = "groundwork-v1"
        index = await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))
        with pytest.raises(IndexUnavailable, match="is there without its alias 'groundwork'; give it the alias"):
            await index.count(KEY)
        await index.close()

    async def test_an_index_of_another_format_is_refused(self, server: ElasticsearchServer) -> None:
        await (await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))).close()
        server.mappings["_meta"] = {"groundwork_format": 0}
        with pytest.raises(EngineUnsupported, match="is of format 0 and not 1: remove the alias"):
            await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))
