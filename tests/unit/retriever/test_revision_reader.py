"""What ingestion may ask the indexes about a revision."""

import numpy as np
import pytest

from services.retriever.errors import IndexUnavailable, InvalidRequest
from services.retriever.models import RevisionKey
from services.retriever.revisions.revision_reader import RevisionReader, RevisionState
from tests.unit.retriever.core_over_fakes import Core
from tests.unit.retriever.fakes import MODEL, embed, make_chunk

OLD, NEW = RevisionKey("local", "d1", "r1"), RevisionKey("local", "d1", "r2")


@pytest.fixture
def core() -> Core:
    return Core()


@pytest.fixture
def reader(core: Core) -> RevisionReader:
    return RevisionReader(core.spaces, core.lexical, core.revisions)


async def publish(core: Core, key: RevisionKey, texts: list[str], number: int = 1) -> None:
    chunks = [make_chunk(text, n, key=key, content_hash=f"hash of {text}") for n, text in enumerate(texts)]
    await core.activate(key, number, await core.index_chunks(key, chunks))


async def vectors(reader: RevisionReader, model: str = MODEL, tenant_id: str = "local") -> dict[str, list[float]]:
    parts = [part async for part in reader.vectors(tenant_id, "d1", model)]
    return {name: row.tolist() for hashes, rows in parts for name, row in zip(hashes, rows, strict=True)}


async def test_vectors_are_those_of_the_active_revision_by_content(core: Core, reader: RevisionReader) -> None:
    texts = [f"solar panel {n}" for n in range(300)]
    await publish(core, OLD, texts)
    await core.index(NEW, ["not yet active"])
    found = await vectors(reader)
    assert set(found) == {f"hash of {text}" for text in texts}
    assert np.allclose(found["hash of solar panel 7"], embed(["solar panel 7"])[0])


async def test_vectors_of_another_model_tenant_or_a_deleted_document_are_nobodys(
    core: Core, reader: RevisionReader
) -> None:
    await publish(core, OLD, ["solar"])
    assert await vectors(reader, model="other") == {}
    assert await vectors(reader, tenant_id="rival") == {}
    await core.switch.delete("local", "d1")
    assert await vectors(reader) == {}


async def test_check_tells_whole_from_incomplete_inactive_and_deleted(core: Core, reader: RevisionReader) -> None:
    await publish(core, OLD, ["solar", "wind"], number=4)

    async def state(key: RevisionKey) -> tuple[RevisionState, int]:
        (held,) = await reader.check([key])
        return held.state, held.active_number

    assert await state(OLD) == (RevisionState.ACTIVE, 4)
    assert await state(NEW) == (RevisionState.INACTIVE, 4)
    assert await state(RevisionKey("local", "unknown", "r1")) == (RevisionState.INACTIVE, 0)
    core.dense.rows.pop()
    assert await state(OLD) == (RevisionState.INCOMPLETE, 4)
    await core.switch.delete("local", "d1")
    assert await state(OLD) == (RevisionState.DELETED, 0)


async def test_check_raises_rather_than_guess_when_an_index_does_not_answer(core: Core, reader: RevisionReader) -> None:
    await publish(core, OLD, ["solar"])
    core.lexical.error = IndexUnavailable("away")
    with pytest.raises(IndexUnavailable):
        await reader.check([OLD])
    with pytest.raises(InvalidRequest):
        await reader.check([OLD] * 201)


async def test_documents_that_searches_show_are_listed_by_tenant(core: Core, reader: RevisionReader) -> None:
    for number in range(3):
        await publish(core, RevisionKey("local", f"d{number}", "r1"), ["solar"])
    await publish(core, RevisionKey("rival", "theirs", "r1"), ["wind"])
    await core.switch.delete("local", "d1")
    assert sorted(reader.visible("local")) == ["d0", "d2"]
    assert reader.visible("nobody") == []
