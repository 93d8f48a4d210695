"""The users and groups of one tenant in memory, and what follows from them for a caller."""

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass

from kit.access.principal import GROUP_PATTERN, SUBJECT_PATTERN
from services.gateway.access.directory.records import FormerNames, GroupRecord, Names, UserRecord

_SUBJECT, _GROUP = re.compile(SUBJECT_PATTERN[1:-1]), re.compile(GROUP_PATTERN[1:-1])


@dataclass(frozen=True)
class Naming:
    """Which subject a user is, and how a group is called here: `GROUNDWORK_SCIM_SUBJECT`."""

    pattern: str = "{userName}"

    @property
    def prefix(self) -> str:
        """In front of users and groups alike."""
        return self.pattern.partition("{")[0]

    @property
    def attribute(self) -> str:
        """Of SCIM, that names a user."""
        return self.pattern.partition("{")[2].rstrip("}")

    def subject(self, names: Names | FormerNames) -> str:
        """Empty for a user who can be no caller."""
        name = names.external_id if self.attribute == "externalId" else names.user_name
        subject = self.prefix + name
        return subject if name and _SUBJECT.fullmatch(subject) else ""

    def group(self, display_name: str) -> str:
        """Empty for a name that no group can have."""
        name = self.prefix + display_name
        return name if _GROUP.fullmatch(name) else ""


@dataclass(frozen=True)
class Membership:
    """What the directory says of a subject."""

    is_locked: bool = False
    """Users who have or had this name are deactivated or deleted, and none who has it is active."""
    given_after: float = 0.0
    """Tokens and logins that are not younger let nobody in."""
    keys_after: float = 0.0
    """API keys that are not younger let nobody in."""
    groups: frozenset[str] = frozenset()

    def admits(self, *, is_key: bool, given_at: float) -> bool:
        """Whether what was given to the subject at that time lets somebody in."""
        return not self.is_locked and given_at > (self.keys_after if is_key else self.given_after)


_UNKNOWN = Membership(given_after=float("-inf"), keys_after=float("-inf"))


class People:
    """The records of one tenant. They are read in other threads too, and changed by the event loop alone."""

    def __init__(self, naming: Naming) -> None:
        self._naming = naming
        self.users: dict[str, UserRecord] = {}
        """By id, deleted ones too."""
        self.groups: dict[str, GroupRecord] = {}
        self._by_subject: dict[str, set[str]] = {}
        """Ids of users by all subjects that they are or were, in lower case: providers write a name in either."""
        self._by_user_name: dict[str, set[str]] = {}
        self._groups_of: dict[str, set[str]] = {}

    def put_user(self, user_id: str, user: UserRecord | None) -> None:
        """Takes over a user; None for one that is gone."""
        if user == self.users.get(user_id):
            return  # as when all is read again: other threads must not miss the user meanwhile
        if (before := self.users.pop(user_id, None)) is not None:
            for subject in self._subjects(before):
                self._by_subject[subject].discard(user_id)
            self._by_user_name[before.names.user_name.casefold()].discard(user_id)
        if user is not None:
            self.users[user_id] = user
            for subject in self._subjects(user):
                self._by_subject.setdefault(subject, set()).add(user_id)
            self._by_user_name.setdefault(user.names.user_name.casefold(), set()).add(user_id)

    def put_group(self, group_id: str, group: GroupRecord | None) -> None:
        """Takes over a group; None for one that is gone."""
        if group == self.groups.get(group_id):
            return
        if (before := self.groups.pop(group_id, None)) is not None:
            for user_id in before.member_ids:
                self._groups_of.get(user_id, set()).discard(group_id)
        if group is not None:
            self.groups[group_id] = group
            for user_id in group.member_ids:
                self._groups_of.setdefault(user_id, set()).add(group_id)

    def standing(self, subject: str) -> Membership:
        """What the directory says of a caller."""
        folded = subject.casefold()
        users = [self.users[user_id] for user_id in self._by_subject.get(folded, ())]
        if not users:
            return _UNKNOWN
        present = [user for user in users if self._naming.subject(user.names).casefold() == folded]
        active = [user for user in present if user.is_active and not user.is_deleted]
        former = [
            each.ended_at for user in users for each in user.former if self._naming.subject(each).casefold() == folded
        ]
        deleted = [user.ended_at for user in present if user.is_deleted]
        keys_after = max([*former, *deleted], default=float("-inf"))
        return Membership(
            is_locked=not active and not all(user.is_active and not user.is_deleted for user in users),
            given_after=max([keys_after, *(user.ended_at or float("-inf") for user in present)]),
            keys_after=keys_after,
            groups=frozenset(
                name
                for user in active
                if self._naming.subject(user.names) == subject
                for group in self.groups_of(user.user_id)
                if (name := self._naming.group(group.display_name))
            ),
        )

    def live(self, user_id: str) -> UserRecord | None:
        """A user who was not deleted."""
        user = self.users.get(user_id)
        return None if user is None or user.is_deleted else user

    def groups_of(self, user_id: str) -> Sequence[GroupRecord]:
        """The groups that a user is in."""
        return [self.groups[group_id] for group_id in self._groups_of.get(user_id, ())]

    def users_named(self, user_name: str) -> Sequence[UserRecord]:
        """Users with this name, in any case of its letters, who were not deleted."""
        found = map(self.live, tuple(self._by_user_name.get(user_name.casefold(), ())))
        return [user for user in found if user is not None]

    def user_like(self, names: Names) -> UserRecord | None:
        """Who has the same name, or is the same subject, already."""
        subject = self._naming.subject(names).casefold()
        same_subject = (
            user
            for user_id in tuple(self._by_subject.get(subject, ()))
            if (user := self.live(user_id)) and self._naming.subject(user.names).casefold() == subject
        )
        return next(iter(self.users_named(names.user_name)), None) or next(same_subject, None)

    def group_named(self, display_name: str) -> GroupRecord | None:
        """The group of this name."""
        folded = display_name.casefold()
        return next((each for each in tuple(self.groups.values()) if each.display_name.casefold() == folded), None)

    def _subjects(self, user: UserRecord) -> Set[str]:
        names: list[Names | FormerNames] = [user.names, *user.former]
        return {self._naming.subject(each).casefold() for each in names} - {""}
