"""Which role a caller has on a collection, and with it on all that is in it. One set of rules for every service that keeps or shows
what belongs to collections: ingestion, which writes their records, and the retriever, which reads them.

    record                    its owner, and who sees all    members           others of the tenant
    private (the default)     owner                          as it says        it does not exist
    tenant                    owner                          at least viewer   viewer
    without an owner          owner                          owner             owner  (of a version before owners)
    none                      sees all: owner                                  it does not exist; but `default` is everybody's

A viewer reads, an editor also changes what is in the collection, an owner also shares, renames and deletes it.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from kit.access.principal import Principal, is_guest

DEFAULT_ID = "default"
"""Of the collection that everybody has without making it; see `own_id`."""
NOTES_ID = "notes"
"""Of the collection that agents keep notes in, likewise."""
FILES_ID = "files"
"""Of the collection that keeps files which clients of OpenAI's API upload, likewise."""
_OWN_ID = re.compile(rf"(?:{DEFAULT_ID}|{NOTES_ID}|{FILES_ID})-([0-9a-f]{{8}})")
_LONGEST_NAME = 55
"""With "-" and the mark of a subject an id has 64 characters."""


class Visibility(StrEnum):
    """Who reads a collection besides its owner."""

    PRIVATE = "private"
    """Nobody."""
    TENANT = "tenant"
    """All subjects of the tenant."""


class Role(StrEnum):
    """What somebody may do with a collection. Each includes those before it."""

    VIEWER = "viewer"
    """Search, ask, open documents."""
    EDITOR = "editor"
    """Upload, change, delete documents; run sources."""
    OWNER = "owner"
    """Share, rename, delete the collection; choose its embedding model."""

    def includes(self, other: "Role") -> bool:
        """Whether who has this role may do what `other` may."""
        return _RANKS[self] >= _RANKS[other]


_RANKS = {role: rank for rank, role in enumerate(Role)}


class MemberKind(StrEnum):
    """What a member of a collection is."""

    SUBJECT = "subject"
    GROUP = "group"


@dataclass(frozen=True)
class Member:
    """A subject or a group with a role on a collection. A kind or role that only a newer version knows grants nothing."""

    kind: str
    name: str
    role: str

    def covers(self, caller: Principal) -> bool:
        """Whether the caller is the subject, or in the group."""
        match self.kind:
            case MemberKind.SUBJECT:
                return self.name == caller.subject
            case MemberKind.GROUP:
                return self.name in caller.groups
        return False


class CollectionRecord(Protocol):
    """What the rules need of a record."""

    @property
    def owner(self) -> str:
        """Subject; empty in a record that a version before owners wrote."""

    @property
    def visibility(self) -> str:
        """A word of Visibility, or one that only a newer version knows: that is read as private."""

    @property
    def members(self) -> Sequence[Member]:
        """Who has a role on it besides its owner."""

    @property
    def deleting(self) -> bool:
        """Whether it is being emptied: it takes no documents any more, and nothing in it is shown."""

    @property
    def local_models_only(self) -> bool:
        """Whether operations on it ask local models only."""


@dataclass(frozen=True, slots=True)
class CollectionAccess:
    """The fields of a stored record that say who may do what."""

    owner: str = ""
    visibility: str = Visibility.PRIVATE
    deleting: bool = False
    members: tuple[Member, ...] = ()
    local_models_only: bool = False
    """Whether operations on it ask local models only."""


def decode_access(value: bytes) -> CollectionAccess | None:
    """The rights that a stored record gives; None for bytes that are no record."""
    try:
        fields = json.loads(value)
        owner, visibility = fields.get("owner", ""), fields.get("visibility", Visibility.PRIVATE)
        deleting = fields.get("deleting", False)
        members = decode_members(fields.get("members", ()))
        # What is not a plain false binds: of a record that this version cannot read, nothing goes outside.
        local_models_only = fields.get("local_models_only", False) is not False
    except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
        return None
    if not (isinstance(owner, str) and isinstance(visibility, str) and isinstance(deleting, bool)):
        return None
    return CollectionAccess(owner, visibility, deleting, members, local_models_only)


def decode_members(stored: Iterable[Any]) -> tuple[Member, ...]:
    """The members in a stored record. Raises TypeError, KeyError for what is none."""
    members = tuple(Member(each["kind"], each["name"], each["role"]) for each in stored)
    if not all(isinstance(word, str) for each in members for word in (each.kind, each.name, each.role)):
        raise TypeError("kind, name and role of a member are texts")
    return members


def role_of(caller: Principal, collection_id: str, record: CollectionRecord | None) -> Role | None:
    """The highest role of the caller on a collection of their tenant; None where it does not exist for them. A guest only reads
    what is shared, whatever role it is shared with: guests are gone after a day with all that they made."""
    held = _held_role(caller, collection_id, record)
    if held is not None and is_guest(caller.subject) and record is not None and record.owner != caller.subject:
        return Role.VIEWER
    return held


def _held_role(caller: Principal, collection_id: str, record: CollectionRecord | None) -> Role | None:
    if caller.sees_all:
        return Role.OWNER
    if record is None:
        return Role.OWNER if collection_id == DEFAULT_ID else None
    if record.owner in ("", caller.subject):
        return Role.OWNER
    roles = [_KNOWN[each.role] for each in record.members if each.role in _KNOWN and each.covers(caller)]
    if record.visibility == Visibility.TENANT:
        roles.append(Role.VIEWER)
    return max(roles, key=_RANKS.__getitem__, default=None)


_KNOWN = {role.value: role for role in Role}


def _has(role: Role, caller: Principal, collection_id: str, record: CollectionRecord | None) -> bool:
    held = role_of(caller, collection_id, record)
    return held is not None and held.includes(role)


def may_read(caller: Principal, collection_id: str, record: CollectionRecord | None) -> bool:
    """Whether the caller may read a collection of their tenant and all that is in it."""
    return _has(Role.VIEWER, caller, collection_id, record)


def may_edit(caller: Principal, collection_id: str, record: CollectionRecord | None) -> bool:
    """Whether the caller may change what is in a collection of their tenant."""
    return _has(Role.EDITOR, caller, collection_id, record)


def may_manage(caller: Principal, collection_id: str, record: CollectionRecord | None) -> bool:
    """Whether the caller may share, rename and delete a collection of their tenant."""
    return _has(Role.OWNER, caller, collection_id, record)


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
    if collection_id in (DEFAULT_ID, NOTES_ID, FILES_ID):
        return own_id(collection_id, caller, local) != collection_id
    marked = _OWN_ID.fullmatch(collection_id)
    return marked is not None and marked[1] != _mark(caller.subject)


def is_implicit(collection_id: str) -> bool:
    """Whether a collection of this id is there without a record."""
    return collection_id in (DEFAULT_ID, NOTES_ID, FILES_ID) or _OWN_ID.fullmatch(collection_id) is not None


def _mark(subject: str) -> str:
    return hashlib.sha256(subject.encode()).hexdigest()[:8]
