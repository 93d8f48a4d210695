"""Changes of users and groups as PATCH of SCIM writes them (RFC 7644, section 3.5.2). Members of a group are added and removed
here: a provider sends hundreds in one request, and to look for each in a group of thousands by a filter takes minutes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar

from scim2_models import Context, Group, GroupMember, InvalidPathException, InvalidValueException, PatchOp, Resource

from services.gateway.schemas.identity.scim import POLICY, ScimUser

MOST_OPERATIONS = 100
"""In one request, besides those that only add or remove members."""
_LONGEST_PATH = 2_000
_ONE_MEMBER = re.compile(r'members\[value eq "([^"\\]*)"\]', re.IGNORECASE)
_ResourceT = TypeVar("_ResourceT", bound=Resource[Any])


def patch_user(user: ScimUser, body: Mapping[str, Any]) -> None:
    """Changes the user as the operations say. Raises ValidationError, SCIMException: then the user may be changed in part."""
    _patch(PatchOp[ScimUser], user, body)


def patch_group(group: Group, body: Mapping[str, Any]) -> None:
    """Changes the group as the operations say. Raises ValidationError, SCIMException: then the group may be changed in part."""
    operations = body.get("Operations")
    if not isinstance(operations, list) or not operations:
        _patch(PatchOp[Group], group, body)
        return
    _check([each for each in operations if _member_change(each) is None])
    for is_of_members, run in groupby(operations, lambda each: _member_change(each) is not None):
        if is_of_members:
            _change_members(group, map(_member_change, run))
        else:
            _patch(PatchOp[Group], group, {**body, "Operations": [_without_own_id(each, group.id) for each in run]})


def _change_members(group: Group, changes: Iterable[tuple[bool, Sequence[str]] | None]) -> None:
    members = {each.value or "": each for each in group.members or ()}
    for is_added, ids in filter(None, changes):
        for member_id in ids:
            if is_added:
                members.setdefault(member_id, GroupMember(value=member_id))
            else:
                members.pop(member_id, None)
    group.members = list(members.values()) or None


def _patch(kind: type[PatchOp[_ResourceT]], resource: _ResourceT, body: Mapping[str, Any]) -> None:
    _check(body.get("Operations"))
    operations = kind.model_validate(body, scim_ctx=Context.RESOURCE_PATCH_REQUEST, scim_policy=POLICY)
    operations.patch(resource, POLICY)


def _check(operations: Any) -> None:
    """Raises InvalidValueException, InvalidPathException for what would take too long."""
    if not isinstance(operations, list):
        return
    if len(operations) > MOST_OPERATIONS:
        raise InvalidValueException(detail=f"a request has {MOST_OPERATIONS} operations at most; divide it")
    for each in operations:
        path = each.get("path") if isinstance(each, Mapping) else None
        if isinstance(path, str) and len(path) > _LONGEST_PATH:
            raise InvalidPathException(detail=f"a path has {_LONGEST_PATH} characters at most")


def _member_change(operation: Any) -> tuple[bool, Sequence[str]] | None:
    """Whether members are added, and their ids; None for an operation that does something else."""
    if not isinstance(operation, Mapping):
        return None
    kind, path, value = (operation.get(name) for name in ("op", "path", "value"))
    name = kind.lower() if isinstance(kind, str) else ""
    if not isinstance(path, str) or name not in {"add", "remove"}:
        return None
    if name == "remove" and value is None and (one := _ONE_MEMBER.fullmatch(path)):
        return False, [one[1]]
    if path.lower() != "members" or not isinstance(value, list) or not value:
        return None
    ids = [each["value"] for each in value if isinstance(each, Mapping) and isinstance(each.get("value"), str)]
    return (name == "add", ids) if len(ids) == len(value) else None


def _without_own_id(operation: Any, own_id: str | None) -> Any:
    """Without the group's own id in a value, which Okta sends along and which changes nothing."""
    value = operation.get("value") if isinstance(operation, Mapping) else None
    if not isinstance(value, Mapping) or value.get("id") != own_id or operation.get("path"):
        return operation
    return {**operation, "value": {name: each for name, each in value.items() if name != "id"}}
