"""Who is taken from a collection in the middle of an answer over it does not get the rest."""

from contextlib import aclosing

import pytest
from groundwork.ingest.v1 import ingest_pb2
from groundwork.orchestrator.v1 import orchestrator_pb2

from kit.access.principal import Principal, use_principal
from kit.testing.harness import USER_SCOPES
from tests.service.access.world import ANN, ENDLESSLY, SECRET, TIMEOUT_S, World

pytestmark = pytest.mark.asyncio(loop_scope="module")

BOB = Principal("acme", "bob", USER_SCOPES)
SUBJECT = ingest_pb2.COLLECTION_MEMBER_KIND_SUBJECT
QUESTION = f"What is the plan for {SECRET}? Say it {ENDLESSLY}."


async def share(world: World) -> None:
    member = ingest_pb2.CollectionMember(kind=SUBJECT, name=BOB.subject, role=ingest_pb2.COLLECTION_ROLE_VIEWER)
    request = ingest_pb2.SetCollectionMemberRequest(collection_id=world.things.ids["collection"], member=member)
    with use_principal(ANN):
        await world.stub("ingest").SetCollectionMember(request, timeout=TIMEOUT_S)


async def take_away(world: World) -> None:
    request = ingest_pb2.RemoveCollectionMemberRequest(
        collection_id=world.things.ids["collection"], kind=SUBJECT, name=BOB.subject
    )
    with use_principal(ANN):
        await world.stub("ingest").RemoveCollectionMember(request, timeout=TIMEOUT_S)


async def test_answer_under_way_ends_when_its_reader_is_taken_from_the_collection(world: World) -> None:
    await share(world)
    request = orchestrator_pb2.StartRunRequest(
        mode=orchestrator_pb2.RUN_MODE_QA, question=QUESTION, collection_ids=[world.things.ids["collection"]]
    )
    seen = []
    with use_principal(BOB):
        async with aclosing(world.stub("orchestrator").StartRun(request, timeout=TIMEOUT_S)) as events:
            async for each in events:
                seen.append(each.event)
                if each.event.HasField("token") and len([one for one in seen if one.HasField("token")]) == 1:
                    await take_away(world)
    (error,) = [each.error for each in seen if each.HasField("error")]
    assert (error.code, error.reason) == ("PERMISSION_DENIED", "ACCESS_WITHDRAWN")
    assert seen[-1].done.status == orchestrator_pb2.RUN_STATUS_FAILED
