"""A bucket over real HTTP, which is moto's double of S3: what is done in it is done to its documents."""

from collections.abc import AsyncIterator

import pytest

from kit.errors import FailedPrecondition, InvalidArgument
from kit.network.egress import AddressRefused, EgressGuard, parse_networks
from services.ingest.adapters.sources.bucket import KIND
from services.ingest.sources.ports import Opening, Surroundings
from tests.doubles.s3 import BUCKET, Bucket, bucket
from tests.service.ingest.conftest import System
from tests.service.ingest.source_user import FAILED, SourceUser, source_user


@pytest.fixture
async def place() -> AsyncIterator[Bucket]:
    async with bucket() as made:
        yield made


@pytest.fixture
async def user(system: System) -> AsyncIterator[SourceUser]:
    async with source_user(system) as made:
        yield made


def settings(place: Bucket, **more: str) -> dict[str, str]:
    return {"bucket": BUCKET, "endpoint": place.url, **more}


async def test_what_is_done_in_the_bucket_is_done_to_its_documents(
    place: Bucket, user: SourceUser, system: System
) -> None:
    await place.write("notes/plan.md", "The tower is to be painted green.")
    await place.write("notes/2024/käse + brot.md", "The paint costs 400 crowns.")
    await place.write("notes/big.txt", "x" * 6 * 1024 * 1024)
    await place.write("notes/", "")
    await place.write("elsewhere/secret.md", "Not meant.")
    made = await user.make(kind="s3", settings=settings(place, prefix="notes/"), secrets=place.secrets)
    assert (made.name, list(made.secret_names)) == (BUCKET, ["access_key", "secret_key"])
    source = await user.until(lambda it: it.sync.HasField("ended_at") and not it.pending_count)
    assert (source.sync.added_count, source.failing_count) == (2, 1)
    assert [(file.path, file.reason) for file in source.failing] == [("notes/big.txt", "FILE_TOO_LARGE")]
    before = await user.documents()
    assert {each.name for each in before.values()} == {"papers/plan.md", "papers/2024/käse + brot.md"}

    await place.write("notes/plan.md", "The tower is to be painted blue, not green.")
    await place.rename("notes/2024/käse + brot.md", "notes/costs.md")
    await place.delete("notes/big.txt")
    source = await user.synced()
    assert (source.sync.changed_count, source.sync.moved_count, source.failing_count) == (1, 1, 0)
    after = await user.documents()
    assert after["notes/plan.md"].document_id == before["notes/plan.md"].document_id
    assert after["notes/costs.md"].document_id == before["notes/2024/käse + brot.md"].document_id

    await place.delete("notes/plan.md")
    source = await user.synced()
    assert (source.sync.total_count, source.sync.removed_count) == (1, 1)
    assert set(await user.documents()) == {"notes/costs.md"}
    assert before["notes/plan.md"].document_id in system.retriever.deleted


async def test_key_that_is_taken_away_loses_no_document_and_another_one_goes_on(
    place: Bucket, user: SourceUser
) -> None:
    await place.write("plan.md", "The tower is to be painted green.")
    await user.make(kind="s3", settings=settings(place), secrets=place.secrets)
    await user.until(lambda it: it.file_count == 1 and not it.pending_count)
    await place.revoke()
    await place.delete("plan.md")
    source = await user.synced()
    assert (source.state, source.error.reason) == (FAILED, "SOURCE_AWAY")
    assert "give it keys that may list" in source.error.message
    assert place.secrets["secret_key"] not in str(source)
    assert set(await user.documents()) == {"plan.md"}
    await place.grant()
    await place.write("other.md", "The bridge is of stone.")
    await user.change(secrets=place.secrets)
    source = await user.synced()
    assert not source.HasField("error")
    assert set(await user.documents()) == {"other.md"}


async def test_bucket_that_cannot_be_read_is_refused_when_it_is_made(place: Bucket, user: SourceUser) -> None:
    wrong = {**place.secrets, "secret_key": "x" * 40}
    with pytest.raises(FailedPrecondition, match=r"lets the source not in .*SignatureDoesNotMatch"):
        await user.make(kind="s3", settings=settings(place), secrets=wrong)
    with pytest.raises(FailedPrecondition, match="no such bucket"):
        await user.make(kind="s3", settings={**settings(place), "bucket": "nothing-here"}, secrets=place.secrets)
    with pytest.raises(InvalidArgument, match="belong together"):
        await user.make(kind="s3", settings=settings(place), secrets={"access_key": "AKIA"})
    with pytest.raises(FailedPrecondition, match="cannot be asked"):
        await user.make(kind="s3", settings={"bucket": BUCKET, "endpoint": "http://127.0.0.1:9"})
    with pytest.raises(FailedPrecondition, match="not on the public internet"):
        await user.make(kind="s3", settings={"bucket": BUCKET, "endpoint": "http://169.254.169.254"})
    with pytest.raises(InvalidArgument, match="http:// is for networks that the operator lists"):
        await user.make(kind="s3", settings={"bucket": BUCKET, "endpoint": "http://8.8.8.8"})
    with pytest.raises(InvalidArgument, match="must begin with http"):
        await user.make(kind="s3", settings={"bucket": BUCKET, "endpoint": "file:///etc"})


async def test_name_that_leaves_the_networks_of_the_operator_is_not_connected_to_in_clear_text() -> None:
    answers = [["10.0.0.9"], ["8.8.8.8"]]

    async def look_up(host: str, port: int) -> list[str]:
        return answers.pop(0)

    guard = EgressGuard(parse_networks("10.0.0.0/8"), look_up=look_up)
    settings = {"bucket": BUCKET, "endpoint": "http://s3.example.com"}
    opening = Opening("t1", settings, {}, Surroundings(lambda _: {}, 10, guard))
    with pytest.raises(AddressRefused):
        async with KIND.open(opening):
            pass
    assert not answers, "the address is judged again when it is connected to"
