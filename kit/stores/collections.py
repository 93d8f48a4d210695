"""Who may read and who may change a collection, and with it all that is in it. One set of rules for every service that keeps or
shows what belongs to collections: ingestion, which writes their records, and the retriever, which reads them.

    record                          its owner, and who sees all    others of the tenant
    private (the default)           reads, changes                 it does not exist
    tenant                          reads, changes                 read
    without an owner                reads, changes                 read, change    (written by a version before owners)
    none                            sees all: reads, changes       it does not exist; but `default` is everybody's
"""

import hashlib
import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from kit.access.principal import Principal

DEFAULT_ID = "default"
"""Of the collection that everybody has without making it; see `own_id`."""
NOTES_ID = "notes"
"""Of the collection that agents keep notes in, likewise."""
_OWN_ID = re.compile(rf"(?:{DEFAULT_ID}|{NOTES_ID})-([0-9a-f]{{8}})")
_LONGEST_NAME = 55
"""With "-" and the mark of a subject an id has 64 characters."""


class Visibility(StrEnum):
    """Who reads a collection besides its owner."""

    PRIVATE = "private"
    """Nobody."""
    TENANT = "tenant"
    """All subjects of the tenant."""


class CollectionRecord(Protocol):
    """What the rules need of a record."""

    @property
    def owner(self) -> str:
        """Subject; empty in a record that a version before owners wrote."""

    @property
    def visibility(self) -> str:
        """A word of Visibility, or one that only a newer version knows: that is read as private."""

    @property
    def deleting(self) -> bool:
        """Whether it is being emptied: it takes no documents any more, and nothing in it is shown."""


@dataclass(frozen=True, slots=True)
class CollectionAccess:
    """The fields of a stored record that say who may do what."""

    owner: str = ""
    visibility: str = Visibility.PRIVATE
    deleting: bool = False


def decode_access(value: bytes) -> CollectionAccess | None:
    """The rights that a stored record gives; None for bytes that are no record."""
    try:
        fields = json.loads(value)
        owner, visibility = fields.get("owner", ""), fields.get("visibility", Visibility.PRIVATE)
        deleting = fields.get("deleting", False)
    except (ValueError, AttributeError, RecursionError):
        return None
    if not (isinstance(owner, str) and isinstance(visibility, str) and isinstance(deleting, bool)):
        return None
    return CollectionAccess(owner, visibility, deleting)


def may_change(caller: Principal, collection_id: str, record: CollectionRecord | None) -> bool:
    """Whether the caller may change a collection of their tenant and all that is in it."""
    if caller.sees_all:
        return True
    if record is None:
        return collection_id == DEFAULT_ID
    return record.owner in ("", caller.subject)


def may_read(caller: Principal, collection_id: str, record: CollectionRecord | None) -> bool:
    """Whether the caller may read a collection of their tenant and all that is in it."""
    return may_change(caller, collection_id, record) or (record is not None and record.visibility == Visibility.TENANT)


def own_id(name: str, caller: Principal, local: Principal) -> str:
    """The id of the caller's own collection of a name that everybody has one of, such as "default": the plain name for the local
    user, who was there before there were others, and the name with a mark of the subject for everyone else."""
    if (caller.tenant_id, caller.subject) == (local.tenant_id, local.subject):
        return name
    return f"{name[:_LONGEST_NAME]}-{_mark(caller.subject)}"


def is_own_default(collection_id: str, caller: Principal, local: Principal) -> bool:
    """Whether this is the caller's default collection, which is there without having been made."""
    return collection_id == own_id(DEFAULT_ID, caller, local)


def is_reserved(collection_id: str, caller: Principal, local: Principal) -> bool:
    """Whether nobody but another subject may have a collection of this id."""
    if collection_id in (DEFAULT_ID, NOTES_ID):
        return own_id(collection_id, caller, local) != collection_id
    marked = _OWN_ID.fullmatch(collection_id)
    return marked is not None and marked[1] != _mark(caller.subject)


def is_implicit(collection_id: str) -> bool:
    """Whether a collection of this id is there without a record."""
    return collection_id in (DEFAULT_ID, NOTES_ID) or _OWN_ID.fullmatch(collection_id) is not None


def _mark(subject: str) -> str:
    return hashlib.sha256(subject.encode()).hexdigest()[:8]
