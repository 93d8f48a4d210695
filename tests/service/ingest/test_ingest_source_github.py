"""A repository over real HTTP, by a double of GitHub's API: what is done on the branch is done to its documents."""

from collections.abc import AsyncIterator

import pytest

from kit.errors import FailedPrecondition, InvalidArgument
from tests.doubles.github import REPOSITORY, GitHub
from tests.doubles.http_double import Failure
from tests.service.ingest.conftest import System
from tests.service.ingest.source_user import FAILED, SourceUser, source_user


@pytest.fixture
async def github() -> AsyncIterator[GitHub]:
    made = GitHub()
    async with made.running():
        yield made


@pytest.fixture
async def user(system: System) -> AsyncIterator[SourceUser]:
    async with source_user(system) as made:
        yield made


async def make(user: SourceUser, github: GitHub, **more: str) -> None:
    settings = {"repository": REPOSITORY, "endpoint": github.url, **more}
    await user.make(kind="github", settings=settings, secrets={"token": github.token})


async def test_what_is_done_on_the_branch_is_done_to_its_documents(github: GitHub, user: SourceUser) -> None:
    github.files = {
        "docs/plan.md": "The tower is to be painted green.",
        "docs/2024/käse.md": "The paint costs 400 crowns.",
        "docs/gone.md": "It goes.",
        "docs/broken.pdf": "%PDF-1.7 this is no PDF",
        "main.py": "print('not meant')",
    }
    github.commit()
    await make(user, github, path="docs")
    source = await user.until(lambda it: it.sync.HasField("ended_at") and not it.pending_count)
    assert (source.name, source.sync.added_count, source.failing_count) == ("papers", 4, 1)
    assert source.failing[0].path == "docs/broken.pdf"
    before = await user.documents()
    assert before["docs/2024/käse.md"].name == "papers/2024/käse.md"
    del github.files["docs/broken.pdf"]
    github.commit()
    source = await user.synced()
    assert (source.failing_count, source.sync.removed_count) == (0, 1)

    github.files["docs/plan.md"] = "The tower is to be painted blue, not green."
    github.files["docs/costs.md"] = github.files.pop("docs/2024/käse.md")
    del github.files["docs/gone.md"]
    github.commit()
    github.requests.clear()
    source = await user.synced()
    assert not [each for each in github.requests if "/trees/" in each.path], "a comparison tells what has changed"
    assert (source.sync.changed_count, source.sync.moved_count, source.sync.removed_count) == (1, 1, 1)
    after = await user.documents()
    assert set(after) == {"docs/plan.md", "docs/costs.md"}
    assert after["docs/costs.md"].document_id == before["docs/2024/käse.md"].document_id
    assert after["docs/plan.md"].document_id == before["docs/plan.md"].document_id

    github.requests.clear()
    await user.synced()
    assert not [each for each in github.requests if "/git/" in each.path or "/compare/" in each.path]

    github.files = {"docs/plan.md": github.files["docs/plan.md"], "docs/deep/new.md": "It is new."}
    github.truncates = True
    github.forget_history()
    await user.synced()
    assert set(await user.documents()) == {"docs/plan.md", "docs/deep/new.md"}


async def test_private_repository_is_read_by_its_collaborators(github: GitHub, user: SourceUser) -> None:
    github.files = {"plan.md": "The tower is to be painted green."}
    github.commit()
    github.collaborators = ["Ann", *(f"user{number}" for number in range(150))]
    await user.own_collection()
    await make(user, github)
    source = await user.until(lambda it: it.file_count == 1 and not it.pending_count)
    assert source.settings["access"] == "source"
    assert await user.readers("plan.md") == sorted(["ann", *(f"user{number}" for number in range(150))])
    github.collaborators = ["Bob"]
    await user.pause()
    await user.change(secrets={"token": github.token})
    await user.until(lambda it: it.access.HasField("refreshed_at"))
    assert await user.readers("plan.md") == ["bob"]


async def test_readers_of_a_private_repository_that_github_does_not_name_are_asked_of_a_person(
    github: GitHub, user: SourceUser
) -> None:
    github.commit()
    github.collaborators = ["ann"]
    github.failures = [Failure(f"GET /repos/{REPOSITORY}/collaborators", 403, {"message": "Must have push access"})]
    with pytest.raises(FailedPrecondition, match=r"Must have push access.*access=collection"):
        await make(user, github)
    await make(user, github, access="collection")


async def test_token_that_is_taken_away_loses_no_document_and_another_one_goes_on(
    github: GitHub, user: SourceUser
) -> None:
    github.files = {"plan.md": "The tower is to be painted green."}
    github.commit()
    await make(user, github)
    await user.until(lambda it: it.file_count == 1 and not it.pending_count)
    github.token = "an0ther"
    github.files = {"other.md": "The bridge is of stone."}
    github.commit()
    source = await user.synced()
    assert (source.state, source.error.reason) == (FAILED, "SOURCE_AWAY")
    assert "give the source another one" in source.error.message
    assert set(await user.documents()) == {"plan.md"}
    await user.change(secrets={"token": github.token})
    await user.until(lambda it: it.access.HasField("refreshed_at"))
    limited = {"x-ratelimit-remaining": "0", "retry-after": "1800"}
    github.failures = [Failure(f"GET /repos/{REPOSITORY}", 403, headers=limited)]
    source = await user.synced()
    assert source.error.reason == "SOURCE_BUSY"
    assert source.next_sync_at.ToSeconds() - source.sync.ended_at.ToSeconds() >= 1799
    await user.synced()
    assert set(await user.documents()) == {"other.md"}


async def test_repository_that_cannot_be_read_is_refused_when_it_is_made(github: GitHub, user: SourceUser) -> None:
    github.files = {"plan.md": "The tower is to be painted green."}
    github.commit()
    with pytest.raises(InvalidArgument, match="owner and the name"):
        await make(user, github, repository="papers")
    with pytest.raises(FailedPrecondition, match="cannot be read"):
        await make(user, github, repository="octocat/nothing")
    with pytest.raises(FailedPrecondition, match="not on the public internet"):
        await make(user, github, endpoint="https://169.254.169.254")
    with pytest.raises(InvalidArgument, match="over no open line"):
        await make(user, github, endpoint="http://github.example.com/api/v3")
    github.token, given = "an0ther", github.token
    settings = {"repository": REPOSITORY, "endpoint": github.url}
    with pytest.raises(FailedPrecondition, match="does not know the token"):
        await user.make(kind="github", settings=settings, secrets={"token": given})
