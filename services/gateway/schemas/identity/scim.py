"""Users and groups as SCIM 2.0 writes them (RFC 7643), and the records that are made of them. Of a user only what says who it is is
taken; other attributes that a provider sends are accepted and not kept."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any

from scim2_models import (
    AuthenticationScheme,
    Bulk,
    CaseExact,
    ChangePassword,
    ComplexAttribute,
    Context,
    ETag,
    Filter,
    Group,
    GroupMember,
    InvalidValueException,
    Meta,
    Patch,
    Required,
    Resource,
    Schema,
    ScimPolicy,
    ScimProvider,
    ServiceProviderConfig,
    Sort,
    Uniqueness,
    UniquenessException,
)
from scim2_models.urn import URN

from services.gateway.access.directory.people import Naming, People
from services.gateway.access.directory.records import FormerNames, GroupRecord, Names, UserRecord, encode

MOST_MEMBERS = 10_000
MOST_USERS = 200_000
"""Of a tenant, deleted ones among them: each gateway holds them in memory."""
MOST_GROUPS = 20_000
MOST_RESULTS = 200
_LONGEST_NAME = 256
_MOST_EMAILS = 20
_MOST_DETAILS = 16_384
_MOST_FORMER = 100

POLICY = ScimPolicy(
    unknown=ScimPolicy.Unknown.ignore,
    # As Microsoft Entra writes its requests.
    remove_value_as_filter=ScimPolicy.RemoveValue.apply,
    unmatched_path_filter=ScimPolicy.UnmatchedPathFilter.create,
)


class PersonName(ComplexAttribute):
    """The parts of a person's name."""

    formatted: str | None = None
    """The whole name."""
    family_name: str | None = None
    """The family name."""
    given_name: str | None = None
    """The given name."""


class MailAddress(ComplexAttribute):
    """An e-mail address. It is kept as it is sent; nothing is mailed to it."""

    value: str | None = None
    """The address."""
    type: str | None = None
    """What it is for."""
    primary: bool | None = None
    """Whether it is the preferred one."""


class ScimUser(Resource[Any]):
    """A user."""

    __schema__ = URN("urn:ietf:params:scim:schemas:core:2.0:User")

    user_name: Annotated[str | None, Required.true, Uniqueness.server, CaseExact.false] = None
    """The name by which the identity provider knows the user."""
    name: PersonName | None = None
    """The parts of the user's name."""
    display_name: str | None = None
    """The user's name as it is shown."""
    emails: list[MailAddress] | None = None
    """E-mail addresses."""
    active: bool | None = None
    """Whether the user is let in."""


_CONFIG = ServiceProviderConfig(
    patch=Patch(supported=True),
    bulk=Bulk(supported=False, max_operations=0, max_payload_size=0),
    filter=Filter(supported=True, max_results=MOST_RESULTS),
    change_password=ChangePassword(supported=False),
    sort=Sort(supported=True),
    etag=ETag(supported=True),
    authentication_schemes=[
        AuthenticationScheme(
            type=AuthenticationScheme.Type.oauthbearertoken,
            name="API key",
            description="An API key with scope `admin`, as a bearer token.",
            primary=True,
        )
    ],
)
PROVIDER = ScimProvider(models=[ScimUser, Group], config=_CONFIG, policy=POLICY)
"""What this gateway says of itself."""


def schemas() -> list[Schema]:
    """The attributes of users and groups, under the names that RFC 7643 gives them."""
    return [each.model_copy(update={"name": str(each.id).rpartition(":")[2]}) for each in PROVIDER.schemas]


def user_resource(user: UserRecord, base: str) -> ScimUser:
    """As clients see it. `base`: where SCIM is served."""
    kept = ScimUser.model_validate(
        {"schemas": [str(ScimUser.__schema__)], **user.details, "userName": user.names.user_name}, scim_policy=POLICY
    )
    kept.id, kept.external_id, kept.active = user.user_id, user.names.external_id or None, user.is_active
    kept.meta = _meta("User", f"{base}/Users/{user.user_id}", user, user_version(user))
    return kept


def user_version(user: UserRecord) -> str:
    """Another one whenever the user has changed."""
    return _version(encode(user))


def group_resource(group: GroupRecord, people: People, base: str) -> Group:
    """As clients see it, with those of its members who are still there."""
    members = [
        GroupMember(value=member, type="User", display=user.names.user_name)
        for member in group.member_ids
        if (user := people.live(member)) is not None
    ]
    meta = _meta("Group", f"{base}/Groups/{group.group_id}", group, group_version(group, people))
    return Group(
        id=group.group_id,
        external_id=group.external_id or None,
        display_name=group.display_name,
        members=members or None,
        meta=meta,
    )


def group_version(group: GroupRecord, people: People) -> str:
    """Another one whenever the group has changed, or who of its members is there and what they are called."""
    live = [user for member in group.member_ids if (user := people.live(member)) is not None]
    return _version(encode(group), *(f"{user.user_id} {user.names.user_name}".encode() for user in live))


def _version(*parts: bytes) -> str:
    """A weak tag: two representations of a record may differ in the attributes that are shown."""
    digest = hashlib.sha256(b"\n".join(parts)).hexdigest()
    return f'W/"{digest[:24]}"'


def new_user(user: ScimUser, user_id: str, people: People, naming: Naming, now: float) -> UserRecord:
    """Raises UniquenessException, InvalidValueException."""
    if len(people.users) >= MOST_USERS:
        raise InvalidValueException(detail=f"a tenant has {MOST_USERS} users at most, deleted ones among them")
    names = _names(user, naming)
    if people.user_like(names) is not None:
        raise UniquenessException(detail=f"there is a user {names.user_name!r} already, or one of the same subject")
    is_active = user.active is not False
    ended_at = 0.0 if is_active else now
    return UserRecord(user_id, names, is_active, now, now, ended_at=ended_at, details=_details(user))


def changed_user(before: UserRecord, after: ScimUser, people: People, naming: Naming, now: float) -> UserRecord:
    """The record once the user is as `after` says: who is not said to be active is not. Raises UniquenessException,
    InvalidValueException."""
    names, former = _names(after, naming), before.former
    other = people.user_like(names) if names != before.names else None
    if other is not None and other.user_id != before.user_id:
        raise UniquenessException(detail=f"there is another user {names.user_name!r}, or one of the same subject")
    if naming.subject(names).casefold() != naming.subject(before.names).casefold():
        left = FormerNames(before.names.user_name, before.names.external_id, now)
        same = (left.user_name, left.external_id)
        if len(former) >= _MOST_FORMER:
            raise InvalidValueException(
                detail=f"a user is renamed {_MOST_FORMER} times at most; delete and send it anew"
            )
        former = (*(each for each in former if (each.user_name, each.external_id) != same), left)
    is_active = after.active is True
    return replace(
        before,
        names=names,
        is_active=is_active,
        changed_at=now,
        ended_at=now if before.is_active and not is_active else before.ended_at,
        former=former,
        details=_details(after),
    )


def deleted_user(before: UserRecord, now: float) -> UserRecord:
    """What stays of a user: the names, so that nothing that was given to them opens the door."""
    return replace(before, is_active=False, is_deleted=True, ended_at=now, changed_at=now, details={})


def new_group(group: Group, group_id: str, people: People, naming: Naming, now: float) -> GroupRecord:
    """Raises UniquenessException, InvalidValueException."""
    if len(people.groups) >= MOST_GROUPS:
        raise InvalidValueException(detail=f"a tenant has {MOST_GROUPS} groups at most")
    return changed_group(GroupRecord(group_id, "", now, now), group, people, naming, now)


def changed_group(before: GroupRecord, after: Group, people: People, naming: Naming, now: float) -> GroupRecord:
    """Raises UniquenessException, InvalidValueException."""
    name = after.display_name or ""
    if not naming.group(name):
        raise InvalidValueException(detail=f"displayName {name!r} can be no group here: write 1 to 128 characters")
    if len(after.external_id or "") > _LONGEST_NAME:
        raise InvalidValueException(detail=f"externalId has {_LONGEST_NAME} characters at most")
    other = people.group_named(name)
    if other is not None and other.group_id != before.group_id:
        raise UniquenessException(detail=f"there is a group {name!r} already")
    members = tuple(dict.fromkeys(each.value or "" for each in after.members or ()))
    if len(members) > MOST_MEMBERS:
        raise InvalidValueException(detail=f"a group has {MOST_MEMBERS} members at most; divide it")
    if unknown := [each for each in members if people.live(each) is None]:
        raise InvalidValueException(
            detail=f"members: there is no user with the id {unknown[0]!r}; send users before their groups, and users alone"
        )
    return replace(before, display_name=name, external_id=after.external_id or "", member_ids=members, changed_at=now)


def read_user(body: Mapping[str, Any], context: Context) -> ScimUser:
    """Raises ValidationError."""
    return ScimUser.model_validate(body, scim_ctx=context, scim_policy=POLICY)


def read_group(body: Mapping[str, Any], context: Context) -> Group:
    """Raises ValidationError."""
    return Group.model_validate(body, scim_ctx=context, scim_policy=POLICY)


def _names(user: ScimUser, naming: Naming) -> Names:
    names = Names(user.user_name or "", user.external_id or "")
    if max(map(len, (names.user_name, names.external_id))) > _LONGEST_NAME:
        raise InvalidValueException(detail=f"userName and externalId have {_LONGEST_NAME} characters at most")
    if not naming.subject(names):
        raise InvalidValueException(
            detail=f"{naming.attribute} can be no subject here, so nothing could end this user's access: it needs 1 to 128 "
            "letters, digits and ._@+:|- (GROUNDWORK_SCIM_SUBJECT says which attribute is the subject)"
        )
    return names


def _details(user: ScimUser) -> Mapping[str, Any]:
    user.emails = (user.emails or [])[:_MOST_EMAILS] or None
    written = user.model_dump(scim_policy=POLICY)
    kept: dict[str, Any] = {name: written[name] for name in ("name", "displayName", "emails") if name in written}
    if len(json.dumps(kept)) > _MOST_DETAILS:
        raise InvalidValueException(detail="name, displayName and emails are too long; send less")
    return kept


def _meta(kind: str, location: str, record: UserRecord | GroupRecord, version: str) -> Meta:
    created, changed = (datetime.fromtimestamp(at, UTC) for at in (record.created_at, record.changed_at))
    return Meta(resource_type=kind, created=created, last_modified=changed, location=location, version=version)
