"""Facts: what a person has said of themself, where it comes from, and how long it holds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

RULES, MODEL, OWNER = "rules", "model", "owner"
"""Who wrote a fact."""


class FactKind(StrEnum):
    """What a fact is about."""

    PROFILE = "profile"
    PREFERENCE = "preference"
    PLAN = "plan"
    RELATION = "relation"
    INSTRUCTION = "instruction"
    UNKNOWN = "unknown"
    """What a newer version wrote."""


class FactStatus(StrEnum):
    """Whether a fact holds."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"


@dataclass(frozen=True)
class Fact:
    """One fact. `slot` names the question that it answers, where there can be one answer only: "lives_in"."""

    fact_id: str
    text: str
    kind: FactKind
    learnt_at: datetime
    valid_from: datetime
    valid_to: datetime | None = None
    confidence: float = 1.0
    run_id: str = ""
    thread_id: str = ""
    said: str = ""
    """The words that it was taken from."""
    slot: str = ""
    answer: str = ""
    """What it answers to its slot's question, in stems."""
    superseded_by: str = ""
    learnt_by: str = RULES
    edited_at: datetime | None = None
    newer_fields: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def status(self, now: datetime) -> FactStatus:
        """Whether it holds at `now`."""
        if self.superseded_by:
            return FactStatus.SUPERSEDED
        return FactStatus.EXPIRED if self.valid_to is not None and self.valid_to <= now else FactStatus.ACTIVE


@dataclass(frozen=True)
class StoredFact:
    """A fact as it was read, with the revision that compare-and-set compares."""

    fact: Fact
    revision: int


@dataclass(frozen=True)
class Statement:
    """Something that a person has said of themself, before it is compared with what is known."""

    text: str
    kind: FactKind
    said: str
    slot: str = ""
    answer: str = ""
    valid_to: datetime | None = None
    confidence: float = 0.8
    learnt_by: str = RULES
    replaces: str = ""
    """The fact that it takes the place of, where a model has named it."""


@dataclass(frozen=True)
class Turn:
    """What a person has said in one turn."""

    run_id: str
    thread_id: str
    text: str
    at: datetime


@dataclass(frozen=True)
class Plan:
    """What a turn changes: recorded before it is done, so that who goes on after a kill does the same."""

    run_id: str
    added: Sequence[Fact] = ()
    superseded: Mapping[str, str] = field(default_factory=dict)
    """The id of each fact that is superseded, and of the fact that takes its place."""


@dataclass(frozen=True)
class Profile:
    """What is kept of a person beside the facts."""

    paused: bool = False
    version: int = 0
    """Grows with each change of the facts."""
    summary: str = ""
    """What a model has written; empty where none has since the last change that made it outdated."""
    summary_version: int = 0
    forgotten_at: datetime | None = None
    """Nothing that was said before is learnt."""
    forgotten_threads: Mapping[str, datetime] = field(default_factory=dict)
    """Threads from which nothing is learnt that was said before a time."""
    pending: Plan | None = None
    """What is being done."""
    newer_fields: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def may_learn(self, turn: Turn) -> bool:
        """Whether the person wants this turn learnt from."""
        limits = [limit for limit in (self.forgotten_at, self.forgotten_threads.get(turn.thread_id)) if limit]
        return not self.paused and all(turn.at > limit for limit in limits)

    def changed(self) -> "Profile":
        """After a change of the facts."""
        return replace(self, version=self.version + 1, pending=None)

    def without_summary(self) -> "Profile":
        """After something was forgotten or edited: the summary may tell of it."""
        return replace(self, version=self.version + 1, summary="", summary_version=0)
