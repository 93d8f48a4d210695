"""Google Drive over real HTTP, by a double that holds requests against Google's discovery document: what is done to files, and to
who may read them, is done to their documents."""

import json
from collections.abc import AsyncIterator
from io import BytesIO

import docx
import pytest
from groundwork.ingest.v1 import ingest_pb2, ingest_pb2_grpc

from kit.access.principal import Principal
from kit.errors import FailedPrecondition, InvalidArgument
from kit.testing.harness import open_test_channel
from tests.doubles.drive import DOCUMENT, Drive
from tests.doubles.http_double import Failure
from tests.service.ingest.conftest import TIMEOUT_S, System
from tests.service.ingest.source_user import FAILED, PAUSED, WAITING, SourceUser, source_user

ANN, BOB = ({"type": "user", "emailAddress": f"{name}@example.com"} for name in ("Ann", "bob"))
STAFF = {"type": "group", "emailAddress": "staff@example.com"}
LINK = {"type": "anyone", "allowFileDiscovery": False}


@pytest.fixture
async def drive() -> AsyncIterator[Drive]:
    made = Drive()
    async with made.running():
        yield made


@pytest.fixture
async def user(system: System) -> AsyncIterator[SourceUser]:
    async with source_user(system) as made:
        await made.own_collection()
        yield made


async def make(user: SourceUser, drive: Drive, **more: str) -> None:
    settings = {"folder": "https://drive.google.com/drive/folders/r00t?usp=sharing", "endpoint": drive.url, **more}
    await user.make(kind="drive", settings=settings, secrets={"service_account": drive.service_account})


async def readers(user: SourceUser, document: ingest_pb2.Document) -> tuple[list[str], list[str]]:
    request = ingest_pb2.GetDocumentAccessRequest(document_id=document.document_id)
    found = (await user.stub.GetDocumentAccess(request, timeout=TIMEOUT_S)).access
    return list(found.subjects), list(found.groups)


def written(text: str) -> bytes:
    made, file = docx.Document(), BytesIO()
    made.add_paragraph(text)
    made.save(file)
    return file.getvalue()


async def test_what_is_done_to_files_and_their_readers_is_done_to_documents(drive: Drive, user: SourceUser) -> None:
    drive.put("f1", "2024")
    drive.put("d1", "plan.txt", b"The tower is to be painted green.")
    drive.put("d2", "Costs", written("The paint costs 400 crowns."), parent="f1", kind=DOCUMENT)
    drive.put("d3", "locked.txt", b"Nobody may have it.")
    drive.put("d4", "form", kind="application/vnd.google-apps.form")
    drive.put("d5", "gone.txt", b"It goes.")
    drive.locked = {"d3"}
    drive.change("d1", permissions=[ANN, STAFF, LINK])
    await make(user, drive)
    source = await user.until(lambda it: it.sync.HasField("ended_at") and not it.pending_count)
    assert (source.state, source.sync.added_count, source.failing_count) == (WAITING, 3, 1), source
    assert (source.failing[0].path, source.failing[0].reason) == ("d3", "FILE_UNREADABLE")
    before = await user.documents()
    assert {each.name for each in before.values()} == {"drive/plan.txt", "drive/2024/Costs.docx", "drive/gone.txt"}
    assert await readers(user, before["d1"]) == (["ann@example.com"], ["staff@example.com"])
    assert await readers(user, before["d2"]) == (["owner@example.com"], [])
    drive.locked = set()
    await user.synced()

    drive.requests.clear()
    source = await user.synced()
    assert not source.sync.total_count
    assert not drive.asked("GET", "/files"), "changes are asked for"

    drive.write("d1", b"The tower is to be painted blue, not green.")
    drive.change("d2", name="Prices", parents=["r00t"], permissions=[BOB])
    drive.remove("d5")
    drive.put("d6", "new.txt", b"It is new.")
    source = await user.synced()
    counts = source.sync
    assert (counts.added_count, counts.changed_count, counts.moved_count, counts.removed_count) == (1, 1, 1, 1)
    after = await user.documents()
    assert set(after) == {"d1", "d2", "d3", "d6"}
    assert (after["d2"].document_id, after["d2"].name) == (before["d2"].document_id, "drive/Prices.docx")
    assert await readers(user, after["d2"]) == (["bob@example.com"], [])

    drive.requests.clear()
    drive.change("d1", permissions=[BOB])
    source = await user.synced()
    assert not [each for each in drive.requests if "alt" in each.query], "the content is not read again"
    assert await readers(user, after["d1"]) == (["bob@example.com"], [])

    drive.change("f1", name="2025")
    drive.change("d1", parents=["f1"])
    await user.synced()
    assert (await user.documents())["d1"].name == "drive/2025/plan.txt"


async def test_name_of_a_file_that_could_not_be_read_is_shown_to_owners_alone(
    system: System, drive: Drive, user: SourceUser
) -> None:
    drive.put("d1", "plan.txt", b"The tower is to be painted green.")
    drive.put("d3", "locked.txt", b"Nobody may have it.")
    drive.locked = {"d3"}
    await make(user, drive)
    source = await user.until(lambda it: it.sync.HasField("ended_at") and not it.pending_count)
    assert [file.path for file in source.failing] == ["d3"]
    viewer = ingest_pb2.SetCollectionMemberRequest(
        collection_id=user.collection_id,
        member=ingest_pb2.CollectionMember(
            kind=ingest_pb2.COLLECTION_MEMBER_KIND_SUBJECT,
            name="ann@example.com",
            role=ingest_pb2.COLLECTION_ROLE_VIEWER,
        ),
    )
    await user.stub.SetCollectionMember(viewer, timeout=TIMEOUT_S)
    async with open_test_channel(system.api_address, Principal("local", "ann@example.com")) as channel:
        request = ingest_pb2.GetSourceRequest(source_id=user.source_id)
        seen = (await ingest_pb2_grpc.IngestServiceStub(channel).GetSource(request, timeout=TIMEOUT_S)).source
    assert (seen.failing_count, list(seen.failing)) == (1, [])


async def test_access_that_is_taken_away_loses_no_document_and_limits_are_heeded(
    drive: Drive, user: SourceUser
) -> None:
    drive.put("d1", "plan.txt", b"The tower is to be painted green.")
    drive.rotates = True
    person = {"client_id": "groundwork", "client_secret": "cl1ent", "refresh_token": drive.refresh_token}
    settings = {"folder": "root", "endpoint": drive.url, "access": "collection"}
    await user.make(kind="drive", settings=settings, secrets=person)
    await user.until(lambda it: it.file_count == 1 and not it.pending_count)
    assert await readers(user, (await user.documents())["d1"]) == ([], [])
    too_often = {"error": {"code": 403, "message": "Rate Limit Exceeded", "errors": [{"reason": "rateLimitExceeded"}]}}
    drive.failures = [Failure("GET /drive/v3/changes", 403, too_often)]
    source = await user.synced()
    assert source.error.reason == "SOURCE_BUSY"
    assert source.next_sync_at.ToSeconds() - source.sync.ended_at.ToSeconds() >= 59
    assert len(drive.tokens) > 1, "each sync got in by the token that came with the one before"
    drive.lets_in = False
    drive.tokens.clear()
    source = await user.synced()
    assert (source.state, source.error.reason) == (FAILED, "SOURCE_AWAY")
    assert "give the source other secrets" in source.error.message
    assert len(await user.documents()) == 1
    drive.lets_in, drive.refresh_token = True, "an0ther"
    await user.change(secrets={**person, "refresh_token": "an0ther"})
    assert (await user.synced()).state == WAITING


async def test_drive_that_cannot_be_read_is_refused_when_it_is_made(drive: Drive, user: SourceUser) -> None:
    with pytest.raises(InvalidArgument, match="source or collection"):
        await make(user, drive, access="nobody")
    with pytest.raises(InvalidArgument, match="service_account, or client_id"):
        await user.make(kind="drive", settings={"folder": "root"})
    with pytest.raises(InvalidArgument, match="JSON file of a service account"):
        await user.make(kind="drive", settings={"folder": "root"}, secrets={"service_account": "{}"})
    with pytest.raises(FailedPrecondition, match="shared with the account"):
        await make(user, drive, folder="n0ne")
    with pytest.raises(FailedPrecondition, match="not on the public internet"):
        await make(user, drive, endpoint="https://169.254.169.254")
    with pytest.raises(InvalidArgument, match="endpoint begins with https"):
        await make(user, drive, endpoint="http://drive.example.com")
    long = json.dumps({"client_email": "a@b", "private_key": "x" * 3_500})
    with pytest.raises(InvalidArgument, match="4096 bits"):
        await user.make(kind="drive", settings={"folder": "root"}, secrets={"service_account": long})
    account = drive.service_account.replace(drive.url, "http://drive.example.com")
    with pytest.raises(InvalidArgument, match="token_uri begins with https"):
        await user.make(kind="drive", settings={"folder": "root"}, secrets={"service_account": account})
    del drive.files["r00t"]["permissions"]
    with pytest.raises(FailedPrecondition, match="make the account one that may share it"):
        await make(user, drive)


async def test_reader_who_is_taken_out_at_a_paused_source_is_taken_out_here(drive: Drive, user: SourceUser) -> None:
    drive.put("d1", "plan.txt", b"The tower is to be painted green.")
    drive.change("d1", permissions=[ANN, BOB])
    await make(user, drive)
    await user.until(lambda it: it.file_count == 1 and not it.pending_count)
    document = (await user.documents())["d1"]
    await user.pause()
    drive.change("d1", permissions=[ANN])
    # Other secrets have the source asked at once, as its interval does.
    await user.change(secrets={"service_account": drive.service_account})
    source = await user.until(lambda it: it.access.HasField("refreshed_at"))
    assert (source.state, source.access.every.seconds, source.access.withheld) == (PAUSED, 900, False)
    assert await readers(user, document) == (["ann@example.com"], [])
