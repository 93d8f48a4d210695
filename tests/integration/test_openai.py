"""OpenAI's API of a running system by the official client: files, vector stores and embeddings, as programs for file
search use them. Every answer is parsed strictly by the client's own types."""

import io
import uuid
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI
from openai._models import BaseModel as OpenAiModel
from pydantic import TypeAdapter

from tests.integration.system import Groundwork

pytestmark = pytest.mark.integration

LIGHTHOUSE = "The lighthouse of Falkensand was switched off in 1987. Its lamp is shown in the museum of Emden."
FERRY = "The ferry Wangerooge was docked for nine weeks because of a cracked propeller shaft."


@pytest.fixture(scope="module")
def client(system: Groundwork) -> Iterator[OpenAI]:
    with OpenAI(api_key="any", base_url=f"{system.base_url}/v1", max_retries=0) as client:
        yield client


def strict(answer: Any) -> Any:
    """The answer, if it is what its type says."""
    assert isinstance(answer, OpenAiModel)
    TypeAdapter(type(answer)).validate_python(answer.model_dump(), strict=True)
    return answer


def upload(client: OpenAI, text: str, name: str) -> str:
    file = strict(client.files.create(file=(name, io.BytesIO(text.encode())), purpose="assistants"))
    assert (file.filename, file.bytes, file.purpose, file.status) == (name, len(text), "assistants", "processed")
    return str(file.id)


def test_files_are_searched_in_a_vector_store_and_cited_by_their_ids(client: OpenAI) -> None:
    store = strict(client.vector_stores.create(name="Coast"))
    lighthouse, ferry = upload(client, LIGHTHOUSE, "a.txt"), upload(client, FERRY, "a.txt")
    added = strict(
        client.vector_stores.files.create_and_poll(
            lighthouse, vector_store_id=store.id, attributes={"year": 1987, "open": False}, poll_interval_ms=50
        )
    )
    assert (added.id, added.status, added.attributes) == (lighthouse, "completed", {"year": "1987", "open": "false"})
    batch = strict(client.vector_stores.file_batches.create_and_poll(store.id, file_ids=[ferry], poll_interval_ms=50))
    assert (batch.status, batch.file_counts.completed, batch.file_counts.total) == ("completed", 1, 1)
    assert [each.id for each in client.vector_stores.file_batches.list_files(batch.id, vector_store_id=store.id)] == [
        ferry
    ]

    found = [
        strict(each) for each in client.vector_stores.search(store.id, query="When was the lighthouse switched off?")
    ]
    assert (found[0].file_id, found[0].filename) == (lighthouse, "a.txt")
    assert "1987" in found[0].content[0].text
    only = client.vector_stores.search(
        store.id, query="lighthouse or ferry", filters={"type": "eq", "key": "year", "value": 1987}, max_num_results=3
    )
    assert {each.file_id for each in only} == {lighthouse}

    tools: Any = [{"type": "file_search", "vector_store_ids": [store.id]}]
    answer = strict(
        client.responses.create(model="groundwork", input="When was the lighthouse switched off?", tools=tools)
    )
    part = answer.output[-1].content[0]
    assert {each.file_id for each in part.annotations} == {lighthouse}
    assert all(part.text[each.index] == "[" for each in part.annotations)

    first, second = [each.id for each in client.vector_stores.files.list(store.id, limit=1, order="asc")]
    assert (first, second) == (lighthouse, ferry)
    assert [each.text for each in client.vector_stores.files.content(ferry, vector_store_id=store.id)] == [FERRY]
    counted = strict(client.vector_stores.retrieve(store.id))
    assert (counted.file_counts.completed, counted.status) == (2, "completed")


def test_file_outlives_its_stores_and_takes_its_copies_with_it(client: OpenAI) -> None:
    file_id = upload(client, FERRY, "ferry.txt")
    one, other = (strict(client.vector_stores.create(name="S", file_ids=[file_id])) for _ in range(2))
    strict(client.vector_stores.files.delete(file_id, vector_store_id=one.id))
    with pytest.raises(openai.NotFoundError, match="add it with POST"):
        client.vector_stores.files.retrieve(file_id, vector_store_id=one.id)
    assert client.files.content(file_id).read() == FERRY.encode()
    strict(client.vector_stores.delete(one.id))
    assert file_id in {each.id for each in client.files.list()}
    strict(client.files.delete(file_id))
    assert list(client.vector_stores.files.list(other.id)) == []
    with pytest.raises(openai.NotFoundError):
        client.files.retrieve(file_id)
    strict(client.vector_stores.update(other.id, name="Renamed"))
    assert "Renamed" in {each.name for each in client.vector_stores.list() if each.id == other.id}
    with pytest.raises(openai.NotFoundError):
        client.vector_stores.create(name="None", file_ids=["ab" * 16])


def test_upload_that_is_sent_again_with_its_key_is_one_file(client: OpenAI) -> None:
    key = {"Idempotency-Key": uuid.uuid4().hex}
    sent = [
        client.files.create(file=("a.txt", io.BytesIO(b"Text.")), purpose="user_data", extra_headers=key)
        for _ in range(2)
    ]
    assert (sent[0].id, sent[0].purpose) == (sent[1].id, "user_data")


def test_embeddings_tell_texts_apart(client: OpenAI) -> None:
    texts = ["When was the lighthouse switched off?", LIGHTHOUSE, FERRY]
    answer = strict(client.embeddings.create(model="groundwork/embedding", input=texts))
    asked, near, far = (each.embedding for each in answer.data)
    assert dot(asked, near) > dot(asked, far)
    assert abs(dot(asked, asked) - 1) < 1e-3
    assert answer.usage.prompt_tokens > 10
    plain = client.embeddings.create(model=answer.model, input=texts[0], encoding_format="float")
    assert plain.data[0].embedding == pytest.approx(asked, abs=1e-3)


def dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
