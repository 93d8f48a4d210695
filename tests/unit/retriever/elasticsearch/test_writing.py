"""What the adapter says when it writes and deletes, word for word, and what it makes of the server's refusals."""

from __future__ import annotations

import pytest

from kit.deadline import set_remaining
from services.retriever.adapters.elasticsearch.index import ElasticsearchIndex
from services.retriever.errors import IndexUnavailable
from services.retriever.indexes.chunk_encoding import point_id
from tests.contract.retriever_index_contract import KEY, store
from tests.doubles.elasticsearch import ElasticsearchServer, error_body
from tests.doubles.http_double import Failure
from tests.unit.retriever.fakes import make_batch, make_chunk, write_key

REVISION = {"terms": {"revision": ["local\x1fd1\x1fr1"]}}
BUSY = {"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "queue is full"}}
WRONG = {"status": 400, "error": {"type": "document_parsing_exception", "reason": "failed to parse field [date]"}}


class TestWriting:
    async def test_chunks_go_to_the_shard_of_their_tenant(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        chunk = make_chunk("Solar!", 3, key=KEY, language="de", heading_path=("Sun",), metadata={"date": "1970-01-02"})
        await index.write(write_key(KEY), make_batch([chunk]))
        (sent,) = server.asked("PUT", "/groundwork-v5/_bulk")
        assert sent.query == {
            "routing": "local",
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
            "text": "solar",
            "title": "d1 md sun d1md",
            "text_length": 1,
            "title_length": 4,
            "terms": " solar \x1e d1  md  sun  d1md ",
            "exact": "sun solar",
            "ordinal": 3,
        }

    async def test_requests_are_bounded_in_documents_and_bytes(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        many = [make_chunk(f"solar {n}", n, key=KEY) for n in range(150)]
        large = [make_chunk("x" * 300_000, n, key=KEY) for n in range(3)]
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
        server.failures += [Failure("/_bulk", status, error_body("busy", "busy"))] * 4
        assert await store(index, KEY, ["one"]) == 1

    @pytest.mark.usefixtures("_short_pauses")
    async def test_a_restart_between_write_and_commit_is_waited_for(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        await index.write(write_key(KEY), make_batch([make_chunk("solar", key=KEY)]))
        server.failures += [Failure("/_count", 503, "starting", {"content-type": "text/plain"})] * 4
        assert await index.commit(write_key(KEY)) == 1

    async def test_what_is_committed_is_searchable_and_what_is_not_is_not(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        await index.write(write_key(KEY), make_batch([make_chunk("solar", key=KEY)]))
        assert await index.count(KEY) == 0
        assert await index.commit(write_key(KEY)) == 1
        assert await index.count(KEY) == 1
        assert [sent.path for sent in server.asked("POST", "/_refresh")] == ["/groundwork-v5/_refresh"]


class TestDeleting:
    async def test_a_deletion_sees_what_was_just_written_and_is_seen_at_once(
        self, server: ElasticsearchServer, index: ElasticsearchIndex
    ) -> None:
        await index.write(write_key(KEY), make_batch([make_chunk("solar", key=KEY)]))
        await index.delete_document("local", "d1")
        (sent,) = server.asked("POST", "/groundwork-v5/_delete_by_query")
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
