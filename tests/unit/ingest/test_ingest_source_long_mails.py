"""Messages of which a server says more than is read: each is named as failing, and stops no other."""

from typing import Any

import pytest

from services.ingest.adapters.sources._imap_connection import AnswerTooLong
from services.ingest.adapters.sources._mail_folders import MailPlace
from services.ingest.adapters.sources.imap import MailReader
from services.ingest.errors import FileNotTaken
from services.ingest.sources.models import FailingFile, SourceFile
from services.ingest.sources.ports import Opening, Surroundings

LONG, OTHER = MailPlace("INBOX", 1, 7), MailPlace("INBOX", 1, 8)


class Client:
    """Has an envelope of each message; that of one has no end."""

    def open_folder(self, name: str) -> int:
        return 1

    def fetch(self, uids: list[int], wanted: Any) -> dict[int, Any]:
        if LONG.uid in uids:
            raise AnswerTooLong("the answer has more than 65536 KiB")
        return {uid: {b"ENVELOPE": Envelope()} for uid in uids}


class Envelope:
    date, from_, subject = None, None, b"Cheese"


class Connection:
    async def call(self, ask: Any, most: int = 0) -> Any:
        return ask(Client())


@pytest.fixture
def reader() -> MailReader:
    connection: Any = Connection()
    return MailReader(connection, Opening("t1", {}, {}, Surroundings(lambda _: {}, 10)))


async def test_message_whose_head_is_too_long_is_named(reader: MailReader) -> None:
    problems: list[FailingFile] = []
    described = await reader._described([LONG, OTHER], problems)
    assert [file.key for file in described] == [OTHER.key]
    assert [(each.key, each.reason) for each in problems] == [(LONG.key, "FILE_TOO_LARGE")]
    assert "its head is too long" in problems[0].message


async def test_message_that_is_sent_as_a_whole_and_is_too_long_is_not_taken(reader: MailReader) -> None:
    with pytest.raises(FileNotTaken, match="split the message") as failing:
        async for _ in reader.fetch(SourceFile(LONG.key)):
            pass
    assert failing.value.reason == "FILE_TOO_LARGE"
