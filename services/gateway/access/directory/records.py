"""Users and groups that an identity provider has sent by SCIM, as they are stored (bucket `DIRECTORY`): one key
`<tenant>.user.<id>` or `<tenant>.group.<id>` for each."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, TypeVar


@dataclass(frozen=True)
class Names:
    """What a user's subject is made of."""

    user_name: str
    external_id: str = ""


@dataclass(frozen=True)
class FormerNames:
    """Names that a user had until `ended_at`. What was given to somebody of these names before is good for nothing."""

    user_name: str
    external_id: str
    ended_at: float
    """Seconds since the epoch."""


@dataclass(frozen=True)
class UserRecord:
    """A user. One that was deleted stays, so that nothing that the user was given before opens the door again."""

    user_id: str
    names: Names
    is_active: bool
    created_at: float
    """Seconds since the epoch, like the other times."""
    changed_at: float
    ended_at: float = 0.0
    """When the user was deactivated last; 0: never. Tokens and logins from before let nobody in any more."""
    is_deleted: bool = False
    former: Sequence[FormerNames] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    """Other attributes, as SCIM writes them. Nothing is decided by them."""
    newer_fields: Mapping[str, Any] = field(default_factory=dict)
    """What a newer version wrote."""


@dataclass(frozen=True)
class GroupRecord:
    """A group."""

    group_id: str
    display_name: str
    created_at: float
    changed_at: float
    external_id: str = ""
    member_ids: Sequence[str] = ()
    """Ids of users."""
    newer_fields: Mapping[str, Any] = field(default_factory=dict)


def encode(record: UserRecord | GroupRecord) -> bytes:
    """As it is stored, with what a newer version wrote."""
    stored = asdict(record)
    return json.dumps({**stored.pop("newer_fields"), **stored}).encode()


def decode_user(data: bytes) -> UserRecord:
    """Raises one of UNREADABLE."""
    known, newer = _split(UserRecord, data)
    known["names"] = Names(**{name: str(value) for name, value in known["names"].items() if name in _NAMES})
    known["former"] = tuple(
        FormerNames(str(each["user_name"]), str(each["external_id"]), float(each["ended_at"]))
        for each in known.get("former", ())
    )
    return UserRecord(**{**known, "is_active": known["is_active"] is True}, newer_fields=newer)


def decode_group(data: bytes) -> GroupRecord:
    """Raises one of UNREADABLE."""
    known, newer = _split(GroupRecord, data)
    known["member_ids"] = tuple(map(str, known.get("member_ids", ())))
    return GroupRecord(**known, newer_fields=newer)


_NAMES = frozenset(each.name for each in fields(Names))
RecordT = TypeVar("RecordT", UserRecord, GroupRecord)


def _split(kind: type[RecordT], data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields that are known here, and the others."""
    stored: dict[str, Any] = json.loads(data)
    names = {each.name for each in fields(kind)} - {"newer_fields"}
    return {name: stored.pop(name) for name in names & stored.keys()}, stored
