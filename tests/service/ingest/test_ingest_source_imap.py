"""Folders of a mailbox, on a real IMAP server over TLS: what is done to messages is done to their documents."""

from collections.abc import AsyncIterator, Iterator
from operator import methodcaller
from pathlib import Path

import pytest

from kit.errors import FailedPrecondition, InvalidArgument
from kit.network.egress import EgressGuard, parse_networks
from kit.network.imap import MailServer
from services.ingest.adapters.sources import imap
from services.ingest.adapters.sources._imap_connection import AnswerTooLong, SourceMail
from services.ingest.errors import SourceTooLarge
from services.ingest.sources.ports import Opening, Surroundings
from tests.doubles.drive import Drive
from tests.doubles.imap import USER, MailHost, message
from tests.service.ingest.conftest import System
from tests.service.ingest.source_user import FAILED, WAITING, SourceUser, source_user

CHEESE = "The cheese costs 400 crowns."


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MailHost]:
    with MailHost(tmp_path).running() as made:
        monkeypatch.setenv("SSL_CERT_FILE", str(made.authorities_file))
        yield made


@pytest.fixture
async def user(system: System) -> AsyncIterator[SourceUser]:
    async with source_user(system) as made:
        await made.own_collection()
        yield made


async def make(user: SourceUser, host: MailHost, **more: str) -> None:
    settings = {"server": "127.0.0.1", "port": str(host.port), "user": USER, **more}
    await user.make(kind="imap", name="mail", settings=settings, secrets={"password": host.password})


async def test_what_is_done_to_messages_is_done_to_their_documents(host: MailHost, user: SourceUser) -> None:
    await host.do(lambda client: client.create_folder("Projects/Bridge Ü"))
    bridge = await host.put("Projects/Bridge Ü", "Der Käse / plan", CHEESE)
    tower = await host.put("INBOX", "The tower", "The tower is to be painted green.")
    gone = await host.put("INBOX", "It goes", "It goes.")
    await host.do(lambda client: client.append("INBOX", b"no headers at all"))
    await make(user, host, folders="INBOX,Projects/*")
    source = await user.until(lambda it: it.sync.HasField("ended_at") and not it.pending_count)
    assert (source.state, source.sync.added_count, source.failing_count) == (WAITING, 4, 1), source
    assert await user.readers(next(iter(await user.documents()))) == [USER.lower()]
    assert source.failing[0].reason == "MAIL_BROKEN"
    assert not any(b"STORE" in command for command in host.commands), "nothing is marked as seen"
    before = {document.name: document for document in (await user.documents()).values()}
    cheese = next(each for name, each in before.items() if "Käse" in name)
    assert cheese.name.startswith("mail/Projects/Bridge Ü/2026-03-02 Der Käse plan [")
    assert dict(cheese.metadata) == {"from": "bo@example.com", "date": "2026-03-02"}

    await host.delete("INBOX", int(source.failing[0].path.rpartition("-")[2]))
    source = await user.synced()
    assert (source.sync.removed_count, source.failing_count) == (1, 0)
    host.commands.clear()
    source = await user.synced()
    assert not source.sync.total_count
    assert b"UID FETCH" not in host.commands, "UIDs tell what is there"

    await host.move("Projects/Bridge Ü", bridge, "INBOX")
    await host.delete("INBOX", gone)
    await host.put("INBOX", "The bridge", "The bridge is of stone.")
    # A draft that is edited is another message.
    await host.delete("INBOX", tower)
    await host.put("INBOX", "The tower", "The tower is to be painted blue, not green.")
    source = await user.synced()
    assert (source.sync.added_count, source.sync.moved_count, source.sync.removed_count) == (2, 1, 2)
    after = {document.document_id: document for document in (await user.documents()).values()}
    assert after[cheese.document_id].name.startswith("mail/INBOX/2026-03-02 Der Käse plan [")

    await host.do(lambda client: client.rename_folder("INBOX", "Projects/Old"))
    source = await user.synced()
    assert (source.sync.moved_count, source.sync.removed_count) == (3, 0)
    assert set(after) == {each.document_id for each in (await user.documents()).values()}

    await host.do(lambda client: (client.select_folder("Projects/Old"), client.delete_messages(client.search())))
    source = await user.synced()
    assert source.error.reason == "SOURCE_EMPTY", "marked as deleted is gone, and all at once is asked about"
    assert len(await user.documents()) == 3
    source = await user.synced(accept_empty=True)
    assert (source.state, source.sync.removed_count) == (WAITING, 3)


async def test_message_that_is_not_given_out_stops_no_other(host: MailHost, user: SourceUser) -> None:
    refused = await host.put("INBOX", "Refused", "Nobody gets it.")
    broken = await host.put("INBOX", "Broken", "The server hangs up over it.")
    await host.put("INBOX", "Cheese", CHEESE)
    host.refused_uids, host.broken_uids = {refused}, {broken}
    await make(user, host)
    source = await user.until(lambda it: it.sync.HasField("ended_at") and not it.pending_count)
    assert (source.state, source.file_count, source.failing_count) == (WAITING, 1, 2)
    assert sorted(each.reason for each in source.failing) == ["FILE_CUT_OFF", "FILE_UNREADABLE"]
    host.refused_uids, host.broken_uids = set(), set()
    source = await user.synced()
    assert (source.file_count, source.failing_count, source.sync.added_count) == (3, 0, 2)


async def test_password_that_is_taken_away_loses_no_document_and_another_one_goes_on(
    host: MailHost, user: SourceUser
) -> None:
    long = bytes(1_500_000)  # more than is asked for at once
    await host.put("INBOX", "Cheese", CHEESE, long)
    await make(user, host, security="starttls", port=str(host.starttls_port))
    source = await user.until(lambda it: it.file_count == 1 and not it.pending_count)
    assert not source.failing_count
    (document,) = (await user.documents()).values()
    assert document.size_bytes == len(message("Cheese", CHEESE, long))
    await host.change_password("an0ther")
    await host.put("INBOX", "The bridge", "The bridge is of stone.")
    source = await user.synced()
    assert (source.state, source.error.reason) == (FAILED, "SOURCE_AWAY")
    assert "give the source another password" in source.error.message
    assert "s3cret" not in str(source)
    assert len(await user.documents()) == 1
    await user.change(secrets={"password": host.password})
    source = await user.synced()
    assert (source.state, source.file_count) == (WAITING, 2)


async def test_mailbox_is_opened_by_a_refresh_token_for_as_long_as_it_gives_out_tokens(
    host: MailHost, user: SourceUser
) -> None:
    await host.put("INBOX", "Cheese", CHEESE)
    provider = Drive()  # gives out tokens for a refresh token, as Google does for Gmail
    async with provider.running():
        host.access_tokens, provider.rotates = provider.tokens, True
        settings = {"server": "127.0.0.1", "port": str(host.port), "user": USER, "token_url": f"{provider.url}/token"}
        secrets = {"client_id": "groundwork", "client_secret": "cl1ent", "refresh_token": provider.refresh_token}
        for some in ({"password": host.password, **secrets}, {"client_id": "groundwork"}, {"refresh_token": "x"}):
            with pytest.raises(InvalidArgument, match="token_url"):
                await user.make(kind="imap", settings=settings, secrets=some)
        made = await user.make(kind="imap", settings=settings, secrets=secrets)
        assert list(made.secret_names) == ["client_id", "client_secret", "refresh_token"]
        source = await user.until(lambda it: it.sync.HasField("ended_at") and not it.pending_count)
        assert (source.state, source.file_count) == (WAITING, 1), source
        provider.lets_in = False
        source = await user.synced()
        assert (source.state, source.error.reason, source.file_count) == (FAILED, "SOURCE_AWAY", 1)
        assert "give the source other secrets" in source.error.message
        provider.lets_in = True
        assert (await user.synced()).state == WAITING, "the token that came with the last one is kept"
        assert provider.refresh_token == f"r3fresh{len(provider.tokens)}"


async def test_mailbox_that_cannot_be_read_is_refused_when_it_is_made(
    host: MailHost, user: SourceUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidArgument, match="tls or starttls"):
        await make(user, host, security="none")
    with pytest.raises(InvalidArgument, match="from 1 to 65535"):
        await make(user, host, port="imaps")
    with pytest.raises(InvalidArgument, match="name of a host"):
        await make(user, host, server="127.0.0.1/x")
    with pytest.raises(InvalidArgument, match="as 2024-01-31"):
        await make(user, host, since="yesterday")
    with pytest.raises(InvalidArgument, match="at most 20 times"):
        await make(user, host, folders="*a" * 21)
    with pytest.raises(FailedPrecondition, match="there is no folder 'Sent'; there are: INBOX"):
        await make(user, host, folders="Sent")
    with pytest.raises(FailedPrecondition, match="not on the public internet"):
        await make(user, host, server="169.254.169.254")
    with pytest.raises(FailedPrecondition, match="cannot be asked"):
        await make(user, host, port=str(host.starttls_port))
    host.password = "wr0ng"
    with pytest.raises(FailedPrecondition, match="refuses the user or the password"):
        await make(user, host)
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(FailedPrecondition, match="certificate verify failed"):
        await make(user, host)


async def test_answer_that_is_longer_than_it_may_be_is_not_read_to_its_end(host: MailHost) -> None:
    server = MailServer("127.0.0.1", host.port, False, USER, host.password)
    connection = SourceMail(EgressGuard(parse_networks("127.0.0.0/8")), server)
    try:
        with pytest.raises(AnswerTooLong):
            await connection.call(lambda client: client.list_folders(), 20)
        assert await connection.call(lambda client: client.list_folders()), "the next call connects anew"
    finally:
        await connection.close()


@pytest.mark.parametrize("bytes_most", [64 * 1024, 0])
async def test_messages_are_counted_folder_by_folder(
    host: MailHost, monkeypatch: pytest.MonkeyPatch, bytes_most: int
) -> None:
    for folder in ("A", "B", "C"):
        await host.do(methodcaller("create_folder", folder))
        for number in range(2):
            await host.put(folder, f"Mail {number}", CHEESE)
    monkeypatch.setattr(imap, "_OTHER_BYTES_MOST", bytes_most)
    host.commands.clear()
    guard = EgressGuard(parse_networks("127.0.0.0/8"))
    settings = {"server": "127.0.0.1", "port": str(host.port), "user": USER, "folders": "A,B,C"}
    opening = Opening("t1", settings, {"password": host.password}, Surroundings(lambda _: {}, 3, guard))
    async with imap.KIND.open(opening) as reader:
        with pytest.raises(SourceTooLarge, match="more than 3 messages"):
            await reader.list_changes("")
    assert len([each for each in host.commands if each.endswith(b"SEARCH")]) == (2 if bytes_most else 0)
