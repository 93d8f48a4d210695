"""What the adapter says when it searches, word for word. The contract suite proves what the requests mean."""

from __future__ import annotations

from typing import Any

import pytest

from services.retriever.adapters.elasticsearch.index import ElasticsearchIndex
from services.retriever.errors import IndexUnavailable
from services.retriever.indexes.chunk_encoding import point_id
from services.retriever.models import LexicalQuery, MetadataCondition, RevisionKey, SearchScope
from tests.contract.retriever_index_contract import KEY, SCOPE, store
from tests.doubles.elasticsearch import ElasticsearchServer, error_body
from tests.doubles.http_double import Failure
from tests.unit.retriever.elasticsearch.specification import check_query

Json = dict[str, Any]


def searched(server: ElasticsearchServer) -> Json:
    """The body of the one search; counts come before it, with phrases that must be there in a request of their own."""
    sent = server.asked("POST", "/groundwork-v5/_msearch")[-1]
    assert sent.query == {"routing": "local"}
    *_, header, body = sent.body
    assert header == {}
    return dict(body)


class TestSearching:
    async def test_filters_do_not_score_and_words_and_phrases_do(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        await store(index, KEY, ["a bear market", "the other year"], collection_id="a", language="en")
        conditions = (MetadataCondition("year", ("2024", "2025")),)
        scope = SearchScope("local", ("a", "b"), ("d1",), conditions, 5, None, ("c1",))
        query = LexicalQuery('the "bear market" of 2008', ("Bear-Market", "x"), ("en",))
        await index.search(scope, [query, LexicalQuery("?!")], 7)
        body = searched(server)
        condition = body.pop("query")["bool"]
        assert body == {"size": 7, "track_total_hits": False, "timeout": "5s"}
        assert condition["filter"] == [
            {"terms": {"tenant": ["local"]}},
            {"terms": {"collection": ["a", "b"]}},
            {"terms": {"document": ["d1"]}},
            {"terms": {"metadata": ["year\x1f2024", "year\x1f2025"]}},
            {"range": {"date": {"gte": 5}}},
            {"terms": {"chunk": ["c1"]}},
        ]
        assert condition["must"] == [{"match_phrase": {"exact": "bear market"}}, {"match_phrase": {"exact": "x"}}]
        assert "minimum_should_match" not in condition
        assert condition["should"] == [  # with the server's own weights, for there is nothing else in its index
            {"term": {"text": {"value": "bear", "boost": pytest.approx(1.0)}}},
            {"term": {"text": {"value": "market", "boost": pytest.approx(1.0)}}},
            {"match_phrase": {"text": {"query": "bear market", "boost": pytest.approx(2.0)}}},
        ]

    async def test_terms_are_counted_in_the_collections_and_in_the_shard(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        scope = SearchScope("local", ("a", "b"), ("d1",))
        assert await index.search(scope, [LexicalQuery("solar", ("solar",), languages=("en",))], 7) == [[]]
        _, corpus, _, shard = server.asked("POST", "/_msearch")[0].body
        filters = {"filters": {"filters": [{"term": {"text": "solar"}}, {"term": {"title": "solar"}}]}}
        counted = {"size": 0, "track_total_hits": True, "timeout": "5s"}
        assert shard == {**counted, "aggs": {"terms": filters}}
        means = {name: {"avg": {"field": f"{name}_length"}} for name in ("text", "title")}
        where = {"bool": {"filter": [{"terms": {"tenant": ["local"]}}, {"terms": {"collection": ["a", "b"]}}]}}
        assert corpus == {**counted, "aggs": {"terms": filters, **means}, "query": where}

    async def test_what_is_scored_anew_is_searched_and_counted_in_one_request(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        await store(index, KEY, ["a solar panel", *(f"{number} panels" for number in range(9))], language="en")
        (hits,) = await index.search(SCOPE, [LexicalQuery("solar panels", languages=("en",))], 1)
        assert [hit.stored.chunk.text for hit in hits] == ["a solar panel"]
        (sent,) = server.asked("POST", "/_msearch")
        _, counted, _, body = sent.body
        assert (counted["size"], body["size"]) == (0, 21)
        boosts = {part["term"]["text"]["boost"] for part in body["query"]["bool"]["should"] if "text" in part["term"]}
        assert boosts == {1.0}

    async def test_the_terms_of_a_word_count_as_one(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        texts = ["policies of berlin", "policies", "le polici", "sun"]
        await store(index, KEY, texts, language="en")
        await index.search(SCOPE, [LexicalQuery("policies of Berlin", ("berlin",), languages=("it",))], 7)
        weights = {
            asked["text"]["value"]: asked["text"]["boost"]
            for part in searched(server)["query"]["bool"]["should"]
            for asked in (part["term"],)
        }
        assert weights.keys() == {"policies", "polici", "berlin"}
        assert weights["berlin"] == pytest.approx(1.0)
        assert weights["policies"] != weights["polici"]  # each is given the weight of the commonest

    @pytest.mark.parametrize(
        ("query_text", "finds"),
        [
            ("what is the pension?", {"the pension fund"}),
            ("what is the", {"the pension fund", "what is the the the of what"}),
            ("what is the geothermal", set()),
        ],
    )
    async def test_words_without_meaning_count_only_when_there_is_nothing_else(
        self, index: ElasticsearchIndex, query_text: str, finds: set[str]
    ) -> None:
        await store(index, KEY, ["what is the the the of what", "the pension fund"])
        (hits,) = await index.search(SCOPE, [LexicalQuery(query_text, languages=("en",))], 5)
        assert {hit.stored.chunk.text for hit in hits} == finds

    async def test_a_query_of_any_length_has_fewer_conditions_than_a_server_takes(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        text = " ".join(f"{word}{number}ations" for number in range(1000) for word in ("gener", "inform"))
        await store(index, KEY, [text], language="en")
        await index.search(SCOPE, [LexicalQuery(text)], 7)
        assert 100 < len(searched(server)["query"]["bool"]["should"]) < 1024

    async def test_every_parameter_of_a_query_is_in_the_servers_specification(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        scope = SearchScope("local", ("a",), ("d1",), (MetadataCondition("year", ("2024",)),), 5, 9, ("c1",))
        await store(index, KEY, ["a quoted phrase 東京 and more"], collection_id="a", language="ja")
        await index.search(scope, [LexicalQuery('a "quoted phrase" 東京', ("must",))], 7)
        assert check_query(searched(server)["query"]) > 8

    async def test_without_a_phrase_a_word_must_match(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        await store(index, KEY, ["solar panel"])
        await index.search(SCOPE, [LexicalQuery("solar")], 7)
        assert searched(server)["query"]["bool"]["minimum_should_match"] == 1

    async def test_a_query_without_words_is_not_asked(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        assert await index.search(SCOPE, [LexicalQuery("?!")], 7) == [[]]
        assert server.asked("POST", "/_msearch") == []

    async def test_answers_with_a_missing_shard_are_no_answers(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        server.failed_shards = 1
        for call in (index.search(SCOPE, [LexicalQuery("solar")], 3), index.count(KEY), index.writes()):
            with pytest.raises(IndexUnavailable, match="in part only: 1 of 1 shards failed"):
                await call

    async def test_one_failed_search_of_several_fails_all(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        responses = {
            "responses": [{**error_body("search_phase_execution_exception", "all shards failed"), "status": 503}]
        }
        server.failures.append(Failure("/_msearch", 200, responses))
        with pytest.raises(IndexUnavailable, match="all shards failed"):
            await index.search(SCOPE, [LexicalQuery("solar")], 3)

    async def test_all_attempts_are_listed_page_by_page(
        self, server: ElasticsearchServer, index: ElasticsearchIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("services.retriever.adapters.elasticsearch.index._WRITES_PER_PAGE", 2)
        keys = [RevisionKey("local", f"d{n}", f"r{n}") for n in range(5)]
        for key in keys:
            await store(index, key, ["solar"])
        assert {write.revision for write in await index.writes()} == set(keys)
        pages = server.asked("POST", "/_search")
        assert all(page.query == {} for page in pages)  # over all tenants
        composite = pages[1].body["aggs"]["writes"]["composite"]
        assert composite["sources"] == [{"write": {"terms": {"field": "write"}}}]
        assert composite["after"] == {"write": "local\x1fd1\x1fr1\x1f0\x1fa"}

    async def test_chunks_are_fetched_by_id_from_their_shard(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        await index.fetch("local", ["c1"])
        (sent,) = server.asked("POST", "/groundwork-v5/_mget")
        assert sent.query == {"routing": "local"}
        assert sent.body == {"ids": [str(point_id("local", "c1"))]}

    async def test_a_search_is_tried_once_more_and_no_more(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        server.failures += [Failure("/_msearch", 503, error_body("no_shard_available", "red"))] * 5
        with pytest.raises(IndexUnavailable, match="answered 503 no_shard_available: red"):
            await index.search(SCOPE, [LexicalQuery("solar")], 3)
        assert len(server.asked("POST", "/_msearch")) == 2
