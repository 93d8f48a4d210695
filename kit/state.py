"""The types with which each service declares, in its `state.py`, what it keeps in the message store.

A store's declaration is the one place that names it. Adapters open the store by it. `ops` derives the rights in NATS, the order of
a backup, what the watch compares, what an operator reads about a loss, and the table in docs/architecture.md.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from enum import Enum

DAY_S = 86_400.0


class Watch(Enum):
    """What the watch over the store of one machine knows of a store's entries."""

    NOTHING = "nothing"
    COUNTS = "counts"
    """How many there are: for stores that are too busy to be read twice, and whose entries expire."""
    ENTRIES = "entries"
    """Each entry, without its value: what people wrote is not stored twice."""
    VALUES = "values"
    """Each entry with its value, so that it can be put back."""


@dataclass(frozen=True)
class Store:
    """What all kinds have in common. `name` is unique among the stores of all services."""

    name: str
    _: KW_ONLY
    holds: str = ""
    """What its entries are. The documentation and the doctor show it."""
    written_by: tuple[str, ...] = ()
    """Users of NATS that read and write it."""
    read_by: tuple[str, ...] = ()
    """Users of NATS that read it, and make it where it is not there yet."""
    needed_by: tuple[str, ...] = ()
    """Names of stores whose entries need this store's entries. A backup copies it after those, so that an entry in the copy has
    what it needs. The watch reads it before those: a deletion begins with the entry that needs, and is then taken for no loss."""
    kept_for_s: float | None = None
    """How long an entry lives after its last write. None: until it is removed, or as long as a setting says."""
    kept_for: str = ""
    """The same in words, where a setting says it."""
    watch: Watch = Watch.NOTHING
    if_lost: str = ""
    """What a loss costs, or from what the entries are made again."""
    advice: str = "Restore a backup if you miss them"
    """What a person can do about entries that are gone and were not put back."""
    is_secret: bool = False
    """Whether a backup leaves it out."""
    is_erased: bool = False
    """Whether what is replaced or removed is overwritten in the files of the message store at once: for what people say."""
    not_ours: str = ""
    """Why its values are no records of ours, with fields that a later version may add to; empty where they are."""

    @property
    def stream(self) -> str:
        """The stream of NATS in which it lies."""
        return self.name

    @property
    def prefix(self) -> str:
        """The beginning of its subjects; what follows is an entry's key."""
        raise NotImplementedError

    @property
    def subjects(self) -> str:
        """The pattern of all its subjects."""
        return f"{self.prefix}>"

    @property
    def keeps_values(self) -> bool:
        """Whether the watch keeps the values of its entries."""
        return self.watch is Watch.VALUES


@dataclass(frozen=True)
class Bucket(Store):
    """A key-value bucket."""

    @property
    def stream(self) -> str:
        return f"KV_{self.name}"

    @property
    def prefix(self) -> str:
        return f"$KV.{self.name}."


@dataclass(frozen=True)
class ObjectBucket(Store):
    """A store of files. Its entries are the descriptions of files; their pieces have subjects of their own."""

    @property
    def stream(self) -> str:
        return f"OBJ_{self.name}"

    @property
    def prefix(self) -> str:
        return f"$O.{self.name}.M."

    @property
    def subjects(self) -> str:
        return f"$O.{self.name}.>"

    @property
    def piece_prefix(self) -> str:
        """The beginning of the subjects of pieces."""
        return f"$O.{self.name}.C."


@dataclass(frozen=True)
class Stream(Store):
    """A stream of messages on `<subject>.<tenant>.<item>`."""

    subject: str
    republished: str = ""
    """The server sends each stored message on to `<republished>.<tenant>.<item>`; empty: it does not."""

    @property
    def prefix(self) -> str:
        return f"{self.subject}."

    @property
    def subjects(self) -> str:
        return f"{self.subject}.*.*"


@dataclass(frozen=True)
class Queue(Store):
    """A work queue: one stream, and a durable consumer for each tenant that all workers share. `written_by` do its jobs."""

    subject: str
    """Subject prefix; jobs go to `<subject>.<tenant>.<rest>`."""
    _: KW_ONLY
    filled_by: tuple[str, ...] = ()
    """Users of NATS that put jobs in, and take none."""
    has_kinds: bool = False
    """Whether the kind of a job follows the tenant in its subject. Then each kind is a right of its own: a key that is good for
    `jobs/FORGET.thread` signs for `forget.<tenant>.thread.<rest>` only."""
    ack_wait_s: float = 15.0
    """A worker that has not been heard of for this long is taken for dead. It is heard of three times in it."""
    backoff_s: tuple[float, ...] = (1.0, 5.0, 15.0, 60.0)
    """Wait before the next delivery after the handler raised, by delivery; the last entry repeats."""
    refills_itself: bool = False
    """Whether a job that is gone is found missing and queued again. Then one whose token is not valid is dropped; else it stays and
    is refused again every ten minutes, until an operator gives its key back or removes it."""

    @property
    def prefix(self) -> str:
        return f"{self.subject}."

    def kind_of(self, subject: str) -> str:
        """The kind that a job's subject names; "*", for which no key is good, where it should and does not."""
        if not self.has_kinds:
            return ""
        parts = subject.removeprefix(self.prefix).split(".")
        return parts[1] if len(parts) > 1 and parts[1] else "*"


@dataclass(frozen=True)
class BellSubject:
    """Messages without a body on `bells.<name>.<tenant>`, which nothing stores: they tell other processes to look."""

    name: str
    rung_by: tuple[str, ...]
    """Users of NATS that ring and hear it."""


Declared = Store | BellSubject
