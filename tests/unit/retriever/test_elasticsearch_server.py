"""What the adapter says to an Elasticsearch server, word for word, and what it makes of the server's refusals. The contract
suite proves what the requests mean."""

from __future__ import annotations

import base64
import inspect
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from elasticsearch import dsl
from elasticsearch.dsl import types
from pydantic import SecretStr

from kit.deadline import set_remaining
from services.retriever.adapters.elasticsearch import ElasticsearchIndex
from services.retriever.adapters.server_retry import RetryPolicy
from services.retriever.errors import EngineUnsupported, IndexUnavailable
from services.retriever.models import LexicalQuery, MetadataCondition, RevisionKey, SearchScope
from services.retriever.options import ElasticsearchOptions
from services.retriever.stored_chunk import point_id
from tests.contract.retriever_index_contract import KEY, SCOPE, store
from tests.doubles.elasticsearch import ElasticsearchServer, elasticsearch_server
from tests.doubles.http_double import Failure
from tests.unit.retriever.fakes import make_batch, make_chunk, write_key

REVISION = {"terms": {"revision": ["local\x1fd1\x1fr1"]}}
BUSY = {"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "queue is full"}}
WRONG = {"status": 400, "error": {"type": "document_parsing_exception", "reason": "failed to parse field [date]"}}


@pytest.fixture
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RetryPolicy, "wait_s", lambda self, failures, asked_for_s: 0.001)


@pytest.fixture
async def server() -> AsyncIterator[ElasticsearchServer]:
    async with elasticsearch_server() as double:
        yield double


@pytest.fixture
async def index(server: ElasticsearchServer) -> AsyncIterator[ElasticsearchIndex]:
    made = await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))
    server.requests.clear()
    yield made
    await made.close()


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
        _check_mapping(server.mappings["properties"])

    async def test_another_process_may_create_at_once(self, server: ElasticsearchServer) -> None:
        first = await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))
        server.failures.append(Failure("GET /groundwork", 404, _error("index_not_found_exception", "no such index")))
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


class TestWriting:
    async def test_chunks_go_to_the_shard_of_their_tenant_and_never_make_an_index(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        chunk = make_chunk("Solar!", 3, key=KEY, language="de", heading_path=("Sun",), metadata={"date": "1970-01-02"})
        await index.write(write_key(KEY), make_batch([chunk]))
        (sent,) = server.asked("PUT", "/groundwork/_bulk")
        assert sent.query == {
            "routing": "local",
            "require_alias": "true",
            "filter_path": "errors,items.*.status,items.*.error",
        }
        assert sent.headers["content-type"] == "application/vnd.elasticsearch+x-ndjson; compatible-with=9"
        action, source = sent.body
        assert action == {"index": {"_id": str(point_id("local", "r1-3"))}}
        assert source.pop("stored").startswith("r1-3\x1fd1\x1fr1\x1f")
        assert source == {
            "tenant": ["local"],
            "collection": ["default"],
            "document": ["d1"],
            "revision": ["local\x1fd1\x1fr1"],
            "write": ["local\x1fd1\x1fr1\x1f0\x1fa"],
            "chunk": ["r1-3"],
            "metadata": ["date\x1f1970-01-02"],
            "date": 86400,
            "text": {"de": "Solar!"},
            "title": {"de": "d1.md Sun"},
            "exact": "sun solar",
            "ordinal": 3,
        }

    async def test_requests_are_bounded_in_documents_and_bytes(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        many = [make_chunk(f"solar {n}", n, key=KEY) for n in range(150)]
        large = [make_chunk("x" * 200_000, n, key=KEY) for n in range(3)]
        await index.write(write_key(KEY), make_batch(many))
        await index.write(write_key(KEY), make_batch(large))
        assert [len(sent.body) // 2 for sent in server.asked("PUT", "/_bulk")] == [64, 64, 22, 1, 1, 1]

    @pytest.mark.usefixtures("_short_pauses")
    async def test_only_what_a_full_queue_refused_is_sent_again(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        server.item_failures = [None, BUSY, None, {**BUSY, "status": 503}, None, BUSY]
        assert await store(index, KEY, ["one", "two", "three", "four"]) == 4
        ordinals = [[source["ordinal"] for source in sent.body[1::2]] for sent in server.asked("PUT", "/_bulk")]
        assert ordinals == [[0, 1, 2, 3], [1, 3], [3]]

    async def test_a_chunk_that_is_wrong_fails_with_the_servers_reason_and_for_good(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        server.item_failures = [None, WRONG, BUSY]
        with pytest.raises(IndexUnavailable, match="400 document_parsing_exception: failed to parse field") as caught:
            await store(index, KEY, ["one", "two", "three"])
        assert not caught.value.retryable
        assert len(server.asked("PUT", "/_bulk")) == 1

    @pytest.mark.usefixtures("_short_pauses")
    async def test_a_queue_that_stays_full_is_an_error_to_come_back_from(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        server.item_failures = [BUSY] * 99
        with pytest.raises(IndexUnavailable, match=r"too busy .* queue is full") as caught:
            await store(index, KEY, ["one"])
        assert caught.value.retryable
        assert len(server.asked("PUT", "/_bulk")) == 5

    async def test_no_pause_outlasts_the_request_in_hand(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        set_remaining(0.05)
        server.item_failures = [BUSY] * 99
        with pytest.raises(IndexUnavailable, match="too busy"):
            await store(index, KEY, ["one"])
        assert len(server.asked("PUT", "/_bulk")) == 1

    @pytest.mark.usefixtures("_short_pauses")
    @pytest.mark.parametrize("status", [429, 502, 503, 504])
    async def test_whole_requests_are_tried_again(
        self, server: ElasticsearchServer, index: ElasticsearchIndex, status: int
    ) -> None:
        server.failures += [Failure("/_bulk", status, _error("busy", "busy"))] * 4
        assert await store(index, KEY, ["one"]) == 1

    async def test_what_is_committed_is_searchable_and_what_is_not_is_not(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        await index.write(write_key(KEY), make_batch([make_chunk("solar", key=KEY)]))
        assert await index.count(KEY) == 0
        assert await index.commit(write_key(KEY)) == 1
        assert await index.count(KEY) == 1
        assert [sent.path for sent in server.asked("POST", "/_refresh")] == ["/groundwork/_refresh"]


class TestDeleting:
    async def test_a_deletion_sees_what_was_just_written_and_is_seen_at_once(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        await index.write(write_key(KEY), make_batch([make_chunk("solar", key=KEY)]))
        await index.delete_document("local", "d1")
        (sent,) = server.asked("POST", "/groundwork/_delete_by_query")
        assert sent.query == {
            "routing": "local",
            "conflicts": "proceed",
            "refresh": "true",
            "wait_for_completion": "true",
        }
        filters = [{"terms": {"tenant": ["local"]}}, {"terms": {"document": ["d1"]}}]
        assert sent.body == {"query": {"bool": {"filter": filters}}}
        assert await index.fetch("local", ["r1-0"]) == []

    async def test_a_commit_deletes_only_what_another_attempt_left(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        await store(index, KEY, ["one", "two"], "a")
        assert server.asked("POST", "/_delete_by_query") == []
        assert await store(index, KEY, ["one"], "b") == 1
        (sent,) = server.asked("POST", "/_delete_by_query")
        attempt = {"terms": {"write": ["local\x1fd1\x1fr1\x1f0\x1fb"]}}
        assert sent.body == {"query": {"bool": {"filter": [REVISION], "must_not": [attempt]}}}

    async def test_what_was_rewritten_meanwhile_is_deleted_in_a_second_round(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        await store(index, KEY, ["one", "two"])
        server.conflicts = 1
        await index.delete_revision(KEY)
        assert len(server.asked("POST", "/_delete_by_query")) == 2
        assert await index.count(KEY) == 0

    async def test_failures_of_a_deletion_are_not_passed_over(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        failed = {"failures": [{"status": 500}], "timed_out": False, "version_conflicts": 0}
        server.failures.append(Failure("/_delete_by_query", 200, failed))
        with pytest.raises(IndexUnavailable, match="could not delete all"):
            await index.delete_revision(KEY)


class TestSearching:
    async def test_filters_do_not_score_and_words_and_phrases_do(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        conditions = (MetadataCondition("year", ("2024", "2025")),)
        scope = SearchScope("local", ("a", "b"), ("d1",), conditions, 5, None, ("c1",))
        query = LexicalQuery('the "bear market" of 2008', ("Bear-Market", "x"), ("de",))
        await index.search(scope, [query, LexicalQuery("?!")], 7)
        (sent,) = server.asked("POST", "/groundwork/_msearch")
        assert sent.query == {"routing": "local"}
        header, body = sent.body
        assert header == {}
        condition = body.pop("query")["bool"]
        assert body == {"size": 7, "_source": ["stored"], "track_total_hits": False, "timeout": "5s"}
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
        words = 'the "bear market" of 2008'
        telling = {"query": words, "analyzer": "groundwork_de_telling"}
        assert condition["should"][:3] == [
            {
                "bool": {
                    "must": [
                        {"match": {"text.de": {**telling, "zero_terms_query": "all"}}},
                        {"match": {"text.de": {"query": words, "boost": 0.001}}},
                    ]
                }
            },
            {"match": {"title.de": {**telling, "boost": 0.25}}},
            {"match_phrase": {"text.de": {"query": "bear market", "boost": 2.0}}},
        ]
        assert all("text.en" in str(part) or "title.en" in str(part) for part in condition["should"][3:])  # undetected

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

    async def test_each_language_is_written_and_searched_in_its_field(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        texts = {"en": "solar", "de": "Sonne", "he": "שמש", "ja": "東京タワー", "": "plain", "pt-BR": "sol"}
        for number, (language, text) in enumerate(texts.items()):
            await store(index, RevisionKey("local", f"d{number}", f"r{number}"), [text], language=language)
        fields = [sent.body[1]["text"] for sent in server.asked("PUT", "/_bulk")]
        assert [list(field) for field in fields] == [["en"], ["de"], ["he"], ["folded"], ["en"], ["pt"]]
        assert "東京" in fields[3]["folded"].split()
        (hits,) = await index.search(SCOPE, [LexicalQuery("東京", languages=("ja",))], 5)
        assert [hit.stored.chunk.text for hit in hits] == ["東京タワー"]
        (hits,) = await index.search(SCOPE, [LexicalQuery("Sonne")], 5)
        assert [hit.stored.chunk.text for hit in hits] == ["Sonne"]

    async def test_every_parameter_of_a_query_is_in_the_servers_specification(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        scope = SearchScope("local", ("a",), ("d1",), (MetadataCondition("year", ("2024",)),), 5, 9, ("c1",))
        await index.search(scope, [LexicalQuery('a "quoted phrase" 東京', ("must",))], 7)
        (sent,) = server.asked("POST", "/_msearch")
        assert _check_query(sent.body[1]["query"]) > 50

    async def test_without_a_phrase_a_word_must_match(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        await index.search(SCOPE, [LexicalQuery("solar")], 7)
        (sent,) = server.asked("POST", "/_msearch")
        assert sent.body[1]["query"]["bool"]["minimum_should_match"] == 1

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
        responses = {"responses": [{**_error("search_phase_execution_exception", "all shards failed"), "status": 503}]}
        server.failures.append(Failure("/_msearch", 200, responses))
        with pytest.raises(IndexUnavailable, match="all shards failed"):
            await index.search(SCOPE, [LexicalQuery("solar")], 3)

    async def test_all_attempts_are_listed_page_by_page(
        self, server: ElasticsearchServer, index: ElasticsearchIndex, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("services.retriever.adapters.elasticsearch._WRITES_PER_PAGE", 2)
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
        (sent,) = server.asked("POST", "/groundwork/_mget")
        assert sent.query == {"routing": "local", "_source_includes": "stored"}
        assert sent.body == {"ids": [str(point_id("local", "c1"))]}

    async def test_a_search_is_tried_once_more_and_no_more(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        server.failures += [Failure("/_msearch", 503, _error("no_shard_available", "red"))] * 5
        with pytest.raises(IndexUnavailable, match="answered 503 no_shard_available: red"):
            await index.search(SCOPE, [LexicalQuery("solar")], 3)
        assert len(server.asked("POST", "/_msearch")) == 2


@dataclass(frozen=True)
class Refused:
    """A server that must not be used, and what is said about it."""

    version: str
    product: str
    says: str


@pytest.mark.parametrize(
    "case",
    [
        Refused("8.19.3", "Elasticsearch", "is version older than 9; this release works with 9.0 and later"),
        Refused("9.0.0", "OpenSearch", "is not Elasticsearch"),
    ],
)
async def test_other_servers_are_refused_at_start(case: Refused) -> None:
    async with elasticsearch_server(case.version, case.product) as server:
        with pytest.raises(EngineUnsupported, match=case.says):
            await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))


async def test_a_server_that_comes_up_late_is_found(server: ElasticsearchServer) -> None:
    server.failures += [Failure("GET /", 503, "upstream not ready", {"content-type": "text/html"})] * 2
    index = await ElasticsearchIndex.open(ElasticsearchOptions((server.url,)))
    assert server.aliases == {}
    assert await store(index, KEY, ["solar"]) == 1
    await index.close()


async def test_nobody_listening_names_the_setting_and_no_password() -> None:
    index = await ElasticsearchIndex.open(ElasticsearchOptions(("http://user:hidden@127.0.0.1:9",)))
    with pytest.raises(IndexUnavailable, match="GROUNDWORK_ELASTICSEARCH_URL") as caught:
        await index.count(KEY)
    assert "hidden" not in caught.value.message
    await index.close()


@pytest.mark.parametrize(
    ("credentials", "header"),
    [
        ({"api_key": SecretStr("aWQ6a2V5")}, "ApiKey aWQ6a2V5"),
        ({"username": "elastic", "password": SecretStr("pw")}, "Basic " + base64.b64encode(b"elastic:pw").decode()),
    ],
)
async def test_credentials_are_sent(server: ElasticsearchServer, credentials: dict[str, Any], header: str) -> None:
    index = await ElasticsearchIndex.open(ElasticsearchOptions((server.url,), **credentials))
    assert {request.headers["authorization"] for request in server.requests} == {header}
    await index.close()


@pytest.mark.parametrize(
    ("status", "says"), [(401, "check GROUNDWORK_ELASTICSEARCH_API_KEY"), (403, "privileges that docs/operations.md")]
)
async def test_refused_credentials_name_the_cure(
    server: ElasticsearchServer, index: ElasticsearchIndex, status: int, says: str
) -> None:
    server.failures.append(Failure("/_count", status, _error("security_exception", "no")))
    with pytest.raises(IndexUnavailable, match=says):
        await index.count(KEY)


async def test_an_index_that_was_removed_is_made_again(server: ElasticsearchServer, index: ElasticsearchIndex) -> None:
    await store(index, KEY, ["solar"])
    server.lose_everything()
    with pytest.raises(IndexUnavailable, match="index_not_found_exception"):
        await index.count(KEY)
    assert await store(index, KEY, ["wind"]) == 1


def _error(kind: str, reason: str) -> dict[str, Any]:
    cause = {"type": kind, "reason": reason}
    return {"error": {"root_cause": [cause], **cause}}


_FIELD_TYPES: dict[str, type] = {
    "keyword": dsl.Keyword,
    "text": dsl.Text,
    "long": dsl.Long,
    "integer": dsl.Integer,
    "object": dsl.Object,
}
_QUERY_TYPES: dict[str, type] = {
    "bool": dsl.query.Bool,
    "match": types.MatchQuery,
    "match_phrase": types.MatchPhraseQuery,
}


def _check_mapping(properties: dict[str, Any]) -> None:
    for mapped in properties.values():
        known = _parameters(_FIELD_TYPES[mapped.get("type", "object")])
        assert set(mapped) - {"type"} <= known
        _check_mapping(mapped.get("properties", {}))


def _check_query(query: dict[str, Any]) -> int:
    """The number of conditions in it, each of which has been compared with the types that Elastic generates from its
    specification of the API."""
    ((kind, condition),) = query.items()
    if kind == "bool":
        assert set(condition) <= _parameters(_QUERY_TYPES[kind])
        parts = [part for name in ("must", "filter", "should", "must_not") for part in condition.get(name, ())]
        return sum(map(_check_query, parts))
    ((_, asked),) = condition.items()
    if kind == "terms":
        assert isinstance(asked, list)
    elif kind == "range":
        assert set(asked) <= {"gt", "gte", "lt", "lte"}
    elif isinstance(asked, dict):
        assert set(asked) <= _parameters(_QUERY_TYPES[kind])
    return 1


def _parameters(known: type) -> set[str]:
    return set(inspect.signature(known).parameters) - {"args", "kwargs"}
