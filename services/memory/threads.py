"""Threads: made, listed, renamed, deleted, appended to.

Appending needs no lock. A message takes the first free position (the store lets only one writer have it), is marked as
being in the thread, and only then does the head's count pass it. So a writer that reads the head first and the mark second
either sees the mark of a message that is already in, or meets it on its walk over the positions beyond the count: the
same message is never stored twice, and two writers never lose one another's, whenever either of them is killed.

Two runs may write into one thread at once, so that their messages stand between one another's. A reader sees turns: the
messages of a run together, at the time of the question.
"""

import asyncio
import base64
import binascii
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from kit.errors import Aborted, AlreadyExists
from services.memory.errors import ArtefactNotFound, BadMessage, BadPageToken, BadTitle, ThreadNotFound
from services.memory.message_items import followers, item_id
from services.memory.models import (
    Answer,
    Artefact,
    Deletion,
    Message,
    Owner,
    Role,
    StoredMessage,
    StoredThread,
    Thread,
    ThreadPage,
)
from services.memory.ports import Deletions, MessageCopies, ThreadStore

TITLE_CHARACTERS_MAX = 200
DERIVED_TITLE_CHARACTERS = 80
TEXT_CHARACTERS_MAX = 100_000
"""A message fits one message of the store (1 MiB) at four bytes a character, with room for its JSON."""
MESSAGE_ID_CHARACTERS_MAX = 128
MESSAGES_PER_APPEND_MAX = 100
CITATIONS_BYTES_MAX = 400_000
VERIFICATION_BYTES_MAX = 200_000
HISTORY_DEFAULT, HISTORY_MAX = 50, 1000
TURNS_APART = 64
"""Messages of others that may stand between those of one turn, or between its question and its place in time."""
PAGE_DEFAULT, PAGE_MAX = 100, 1000
HEAD_RETRY_S = 0.005
LATE_APPENDS_END_AFTER = timedelta(seconds=20)
"""How long after a deletion an append that began before it may still write: calls end with their deadline, which is shorter."""
FORGOTTEN_TEXT = "This answer was removed, because something that it quotes was deleted."
_THREAD_ID = re.compile(r"[0-9a-f]{12}")


class Threads:
    """The use cases. The owner of every call is the caller; another's thread is not found."""

    def __init__(
        self,
        store: ThreadStore,
        deletions: Deletions,
        copies: MessageCopies,
        *,
        now: Callable[[], datetime],
        new_thread_id: Callable[[], str],
    ) -> None:
        self._store = store
        self._deletions = deletions
        self._copies = copies
        self._now = now
        self.new_id = new_thread_id

    async def create(self, owner: Owner, title: str, thread_id: str = "") -> Thread:
        """A new thread; an empty title is given by the first question. Under a given id it is harmless when repeated. Raises
        BadTitle."""
        title = title.strip()
        if len(title) > TITLE_CHARACTERS_MAX:
            raise BadTitle(f"the title has {len(title)} characters; at most {TITLE_CHARACTERS_MAX} are kept")
        while True:
            now = self._now()
            new = Thread(thread_id or self.new_id(), title, created_at=now, updated_at=now, message_count=0)
            try:
                await self._store.create_head(owner, new)
            except AlreadyExists:
                if thread_id:
                    return await self.get(owner, thread_id)
                continue
            return new

    async def get(self, owner: Owner, thread_id: str) -> Thread:
        """Raises ThreadNotFound."""
        return (await self._head(owner, thread_id)).thread

    async def page(self, owner: Owner, page_size: int, page_token: str) -> ThreadPage:
        """The owner's threads, last used first."""
        size = min(page_size or PAGE_DEFAULT, PAGE_MAX)
        after = _parse_token(page_token)
        threads = sorted([thread async for thread in self._store.list_heads(owner)], key=_list_order)
        rest = [thread for thread in threads if after is None or _list_order(thread) > after]
        token = _make_token(rest[size - 1]) if len(rest) > size else ""
        return ThreadPage(rest[:size], token)

    async def rename(self, owner: Owner, thread_id: str, title: str) -> Thread:
        """Raises BadTitle unless 1 to 200 characters."""
        title = title.strip()
        if not 0 < len(title) <= TITLE_CHARACTERS_MAX:
            raise BadTitle(f"a title has 1 to {TITLE_CHARACTERS_MAX} characters; this one has {len(title)}")
        return await self._change_head(owner, thread_id, lambda thread: replace(thread, title=title))

    async def delete(self, owner: Owner, thread_id: str) -> None:
        """The thread is gone when this returns, and its runs within a minute. Harmless when repeated. Raises Unavailable."""
        if _THREAD_ID.fullmatch(thread_id):
            await self._deletions.queue(Deletion(owner, thread_id, self._now()))
            await self._erase(owner, thread_id)

    async def finish_deletion(self, deletion: Deletion) -> float | None:
        """All of a deletion, from the queue. None when it is done, else the seconds after which to look once more: an append that
        read the head before it went may write, and be killed before it cleans up after itself."""
        await self._erase(deletion.owner, deletion.thread_id)
        await self._deletions.forget_runs(deletion)
        await self._copies.remove(deletion.owner, (), [deletion.thread_id])
        waited = max(timedelta(0), self._now() - deletion.requested_at)  # less than none where the clock was set back
        remaining = LATE_APPENDS_END_AFTER - waited
        return remaining.total_seconds() if remaining > timedelta(0) else None

    async def _erase(self, owner: Owner, thread_id: str) -> None:
        """The head goes first: from then on nobody finds the thread."""
        await self._store.delete_head(owner, thread_id)
        await self._store.purge_messages(owner, thread_id)

    async def forget_answer(self, owner: Owner, thread_id: str, run_id: str) -> None:
        """Replaces what a run answered by a notice; the question stays. Harmless where there is no such thread or run."""

        def without_text(message: Message) -> Message:
            if message.run_id != run_id or message.role is Role.USER or message.forgotten:
                return message
            return message.without_text(FORGOTTEN_TEXT)

        def is_answer(message: Message) -> bool:
            return message.run_id == run_id and message.role is not Role.USER

        if run_id and _THREAD_ID.fullmatch(thread_id):
            await self._store.rewrite(owner, thread_id, without_text)
            appended = await self.as_appended(owner, thread_id)
            if answers := [each for each in appended if is_answer(each)]:
                await self._copies.remove(owner, [item_id(thread_id, each) for each in answers])
                await self._copies.put(owner, followers(thread_id, appended, is_answer), known_only=True)

    async def append(self, owner: Owner, thread_id: str, messages: Sequence[Message]) -> Thread:
        """Appends in order; a message whose id is already there is not appended again."""
        _check(messages)
        thread = (await self._head(owner, thread_id)).thread
        try:
            for message in messages:
                thread = await self._append_one(owner, thread, message)
        except ThreadNotFound:
            await self._store.purge_messages(owner, thread_id)  # deleted while this wrote
            raise
        return thread

    async def history(self, owner: Owner, thread_id: str, limit: int) -> list[Message]:
        """The last messages, oldest first, turn by turn in the order in which was asked."""
        thread = (await self._head(owner, thread_id)).thread
        wanted = min(limit or HISTORY_DEFAULT, HISTORY_MAX)
        first = max(1, thread.message_count - wanted - TURNS_APART + 1)
        return _by_turn(await self._store.read(owner, thread_id, first, thread.message_count))[-wanted:]

    async def artefact(self, owner: Owner, thread_id: str, run_id: str, artefact_id: str) -> Artefact:
        """What a run has made in the thread, with the answers to it. Raises ThreadNotFound, ArtefactNotFound."""
        return _artefact(await self._message_with(owner, thread_id, run_id, artefact_id), artefact_id)

    async def record_answers(
        self, owner: Owner, thread_id: str, run_id: str, artefact_id: str, answers: Sequence[Answer]
    ) -> Artefact:
        """Keeps answers to the questions of an artefact with it. Raises ThreadNotFound, ArtefactNotFound, BadMessage."""
        if len(answers) > MESSAGES_PER_APPEND_MAX:
            raise BadMessage(f"{len(answers)} answers at once; send at most {MESSAGES_PER_APPEND_MAX} in a call")
        while True:  # ends with the call's deadline; each turn some writer has got through
            stored = await self._message_with(owner, thread_id, run_id, artefact_id)
            changed = stored.message.with_answers(artefact_id, answers)
            try:
                await self._store.replace(owner, thread_id, stored, changed)
            except Aborted:
                await asyncio.sleep(HEAD_RETRY_S)
                continue
            return _artefact(replace(stored, message=changed), artefact_id)

    async def _message_with(self, owner: Owner, thread_id: str, run_id: str, artefact_id: str) -> StoredMessage:
        await self._head(owner, thread_id)

        def is_it(message: Message) -> bool:
            return message.run_id == run_id and any(
                each.get("artefact_id") == artefact_id for each in message.artefacts
            )

        stored = await self._store.find(owner, thread_id, is_it)
        if stored is None:
            raise ArtefactNotFound(
                f"thread {thread_id} has no {artefact_id!r:.80} of run {run_id!r:.80}; look at its messages"
            )
        return stored

    async def as_appended(self, owner: Owner, thread_id: str, last: int = 0) -> list[Message]:
        """The last so many messages in the order in which they were appended, all for 0; none where there is no such thread."""
        try:
            count = (await self._head(owner, thread_id)).thread.message_count
        except ThreadNotFound:
            return []
        return await self._store.read(owner, thread_id, max(1, count - last + 1) if last else 1, count)

    async def _append_one(self, owner: Owner, head: Thread, message: Message) -> Thread:
        """`head` was read before the mark is: the order on which the module's promise rests."""
        if await self._store.is_marked(owner, head.thread_id, message.message_id):
            return head
        position = head.message_count + 1
        while there := await self._store.take_position(owner, head.thread_id, position, message):
            # Its writer may have been killed before marking it; our count is about to pass it.
            await self._store.mark(owner, head.thread_id, there.message_id)
            if there.message_id == message.message_id:
                break
            position += 1
        else:
            await self._store.mark(owner, head.thread_id, message.message_id)
        return await self._change_head(owner, head.thread_id, lambda thread: _with(thread, position, message))

    async def _change_head(self, owner: Owner, thread_id: str, change: Callable[[Thread], Thread]) -> Thread:
        while True:  # ends with the call's deadline; each turn some writer has got through
            stored = await self._head(owner, thread_id)
            thread = change(stored.thread)
            try:
                await self._store.update_head(owner, thread, stored.revision)
            except Aborted:
                await asyncio.sleep(HEAD_RETRY_S)
                continue
            return thread

    async def _head(self, owner: Owner, thread_id: str) -> StoredThread:
        stored = await self._store.get_head(owner, thread_id) if _THREAD_ID.fullmatch(thread_id) else None
        if stored is None:
            raise ThreadNotFound(f"there is no thread {thread_id!r:.80}; list the threads, or start a new one")
        return stored


def _artefact(stored: StoredMessage, artefact_id: str) -> Artefact:
    return next(each for each in stored.message.artefacts if each.get("artefact_id") == artefact_id)


def _with(thread: Thread, position: int, message: Message) -> Thread:
    title = thread.title or (_derived_title(message.text) if message.role is Role.USER else "")
    return replace(
        thread,
        title=title,
        message_count=max(thread.message_count, position),
        updated_at=max(thread.updated_at, message.at),
    )


def _by_turn(messages: Sequence[Message]) -> list[Message]:
    """Messages of one run side by side; runs, and messages of none, by the time of their first message."""
    turns: dict[str, list[Message]] = {}
    for message in messages:
        turns.setdefault(message.run_id or message.message_id, []).append(message)
    in_order = sorted(turns.values(), key=lambda turn: turn[0].at)
    return [message for turn in in_order for message in turn]


def _derived_title(question: str) -> str:
    words = " ".join(question.split())
    if len(words) <= DERIVED_TITLE_CHARACTERS:
        return words
    cut = words[: DERIVED_TITLE_CHARACTERS - 1]
    head, space, _ = cut.rpartition(" ")
    return (head if space and len(head) > DERIVED_TITLE_CHARACTERS // 2 else cut).rstrip() + "…"


def _check(messages: Sequence[Message]) -> None:
    if len(messages) > MESSAGES_PER_APPEND_MAX:
        raise BadMessage(f"{len(messages)} messages at once; append at most {MESSAGES_PER_APPEND_MAX} in a call")
    for number, message in enumerate(messages, start=1):
        if not 0 < len(message.message_id) <= MESSAGE_ID_CHARACTERS_MAX:
            raise BadMessage(f"message {number} needs a message_id of 1 to {MESSAGE_ID_CHARACTERS_MAX} characters")
        if len(message.text) > TEXT_CHARACTERS_MAX:
            raise BadMessage(
                f"message {number} has {len(message.text)} characters; at most {TEXT_CHARACTERS_MAX} are kept. Shorten it"
            )
        if (size := len(json.dumps(message.citations, ensure_ascii=False).encode())) > CITATIONS_BYTES_MAX:
            raise BadMessage(
                f"the citations of message {number} have {size} bytes; at most {CITATIONS_BYTES_MAX} are kept. Leave out texts"
            )
        if (size := len(json.dumps(message.verification, ensure_ascii=False).encode())) > VERIFICATION_BYTES_MAX:
            raise BadMessage(
                f"the verification of message {number} has {size} bytes; at most {VERIFICATION_BYTES_MAX} are kept. Leave out spans"
            )


def _list_order(thread: Thread) -> tuple[int, str]:
    return -round(thread.updated_at.timestamp() * 1e6), thread.thread_id


def _make_token(thread: Thread) -> str:
    negative_us, thread_id = _list_order(thread)
    return base64.urlsafe_b64encode(f"{negative_us}:{thread_id}".encode()).decode()


def _parse_token(token: str) -> tuple[int, str] | None:
    if not token:
        return None
    try:
        negative_us, _, thread_id = base64.urlsafe_b64decode(token.encode()).decode().partition(":")
        return int(negative_us), thread_id
    except (ValueError, binascii.Error) as error:
        raise BadPageToken("the page token is not one of ours; start from the first page") from error
