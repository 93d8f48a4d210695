"""Threads and their messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

Citation = dict[str, Any]
"""A passage that a message cites, as its writer sent it: a JSON object of memory.proto's MessageCitation. Kept, not looked into."""
Verification = dict[str, Any]
"""The verdict on each claim of a message, in the same way: of orchestrator.proto's Verification."""

Artefact = dict[str, Any]
"""What a message's run has made besides its text: a JSON object of memory.proto's MessageArtefact. Kept, not looked into."""

Answer = dict[str, Any]
"""An answer to a question of an artefact: a JSON object of memory.proto's QuestionAnswer."""


class Role(StrEnum):
    """Who wrote a message."""

    USER = "user"
    ASSISTANT = "assistant"
    UNKNOWN = "unknown"
    """What a newer version wrote."""


@dataclass(frozen=True)
class Owner:
    """Whose threads: one subject of one tenant."""

    tenant_id: str
    subject: str


@dataclass(frozen=True)
class Message:
    """One message. `message_id` is the writer's, unique within the thread."""

    message_id: str
    role: Role
    text: str
    run_id: str
    at: datetime
    forgotten: bool = False
    """Its text was removed, and is a notice now."""
    citations: tuple[Citation, ...] = ()
    support_status: str = ""
    method: str = ""
    answer_confidence: float | None = None
    answer_status: str = ""
    run_status: str = ""
    """How the run that wrote it ended; empty for a question."""
    artefacts: tuple[Artefact, ...] = ()
    verification: Verification | None = None
    """None where nothing was judged."""

    def without_text(self, notice: str) -> "Message":
        """With `notice` in place of its text, and without all that was said of that."""
        return replace(
            self,
            text=notice,
            forgotten=True,
            citations=(),
            artefacts=(),
            support_status="",
            method="",
            answer_confidence=None,
            answer_status="",
            verification=None,
        )

    def with_answers(self, artefact_id: str, answers: Sequence[Answer]) -> "Message":
        """With these answers to the questions of one of its artefacts, each in place of the one before to its question."""

        def answered(artefact: Artefact) -> Artefact:
            if artefact.get("artefact_id") != artefact_id:
                return artefact
            known = {each.get("question_id", ""): each for each in [*artefact.get("answers", ()), *answers]}
            return artefact | {"answers": list(known.values())}

        return replace(self, artefacts=tuple(map(answered, self.artefacts)))


@dataclass(frozen=True)
class Thread:
    """A conversation's head. `title` is empty until a question gives it one."""

    thread_id: str
    title: str
    created_at: datetime
    updated_at: datetime
    message_count: int
    newer_fields: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What a newer version stored that this one does not know; written back with every change."""


@dataclass(frozen=True)
class StoredThread:
    """A head as it was read, with the revision that compare-and-set compares."""

    thread: Thread
    revision: int


@dataclass(frozen=True)
class StoredMessage:
    """A message as it was read: its key, its record, and the revision that compare-and-set compares."""

    message: Message
    key: str
    record: bytes
    revision: int


@dataclass(frozen=True)
class ThreadPage:
    """One page of a listing, last used first."""

    threads: list[Thread]
    next_page_token: str


@dataclass(frozen=True)
class Deletion:
    """A thread that is to be deleted, and since when."""

    owner: Owner
    thread_id: str
    requested_at: datetime
