"""SCIM 2.0 (RFC 7644): an identity provider sends a tenant's users and groups here, and says who has left. The provider shows an
API key of that tenant with scope `admin`."""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from scim2_models import Context, Group, ListResponse, NotFoundException, ResourceType, Schema, SearchRequest

from services.gateway.access.auth import admission_of, client_address
from services.gateway.access.directory.directory import Directory
from services.gateway.access.directory.people import People
from services.gateway.access.directory.records import GroupRecord, UserRecord
from services.gateway.access.keys import Keys
from services.gateway.access.scopes import NEEDS_ADMIN
from services.gateway.backends import Services
from services.gateway.errors import RouteNotFound
from services.gateway.routes.identity.scim_answers import (
    Conditions,
    ScimRoute,
    answer,
    name_asked_for,
    not_modified,
    page_of,
    query_of,
    read_body,
    shown_attributes,
    the_one,
    whole_list,
)
from services.gateway.schemas.identity import scim, scim_patch
from services.gateway.serving.requests import base_url

_ROOT = "/scim/v2"

router = APIRouter(prefix=_ROOT, route_class=ScimRoute, include_in_schema=False, dependencies=[NEEDS_ADMIN])


@dataclass(frozen=True)
class Desk:
    """The directory of one tenant, for one request."""

    keys: Keys
    directory: Directory
    request: Request
    base: str
    """Where SCIM is served, as clients reach it."""

    @property
    def tenant_id(self) -> str:
        return admission_of(self.request.scope).principal.tenant_id

    @property
    def people(self) -> People:
        return self.directory.people(self.tenant_id)

    @property
    def conditions(self) -> Conditions:
        return Conditions(self.request)

    @property
    def now(self) -> float:
        return self.keys.now().timestamp()

    def note(self, before: UserRecord | None, after: UserRecord) -> None:
        """Has the audit log name who may come in, or may not any more."""
        was_active = before is not None and before.is_active
        action = "user_deleted" if after.is_deleted else "user_deactivated" if not after.is_active else "user_activated"
        if after.is_deleted or was_active != after.is_active:
            subject = self.directory.naming.subject(after.names)
            admission, address = admission_of(self.request.scope), client_address(self.request.scope)
            self.request.app.state.audit.user_changed(action, subject, admission, address)


async def _desk(request: Request, services: Services) -> Desk:
    keys: Keys | None = request.app.state.api_keys
    if keys is None:
        raise RouteNotFound("this gateway asks nobody who they are; start it with GROUNDWORK_AUTH=api_keys to use SCIM")
    directory = await keys.members.directory()
    directory.require_fresh()
    await directory.catch_up()
    return Desk(keys, directory, request, base_url(request.scope, services.settings.public_url) + _ROOT)


AtDesk = Annotated[Desk, Depends(_desk)]


@router.get("/ServiceProviderConfig")
async def show_config() -> Response:
    """What can be asked here."""
    assert scim.PROVIDER.config is not None
    return answer(scim.PROVIDER.config)


@router.get("/ResourceTypes")
async def list_resource_types() -> Response:
    """Users and groups."""
    return whole_list(ListResponse[ResourceType], scim.PROVIDER.resource_types)


@router.get("/ResourceTypes/{name}")
async def show_resource_type(name: str) -> Response:
    """One of them."""
    return answer(the_one(each for each in scim.PROVIDER.resource_types if each.name == name))


@router.get("/Schemas")
async def list_schemas() -> Response:
    """The attributes of users and groups."""
    return whole_list(ListResponse[Schema], scim.schemas())


@router.get("/Schemas/{urn}")
async def show_schema(urn: str) -> Response:
    """The attributes of one of them."""
    return answer(the_one(each for each in scim.schemas() if each.id == urn))


@router.get("/Users")
async def list_users(desk: AtDesk) -> Response:
    """Users, as a filter says."""
    people, named = desk.people, name_asked_for(desk.request, "userName")
    users = tuple(people.users.values()) if named is None else people.users_named(named)
    asked = SearchRequest[scim.ScimUser].model_validate(query_of(desk.request), scim_policy=scim.POLICY)
    live = [user for user in users if not user.is_deleted]
    return await page_of(ListResponse[scim.ScimUser], asked, live, lambda user: scim.user_resource(user, desk.base))


@router.post("/Users")
async def create_user(desk: AtDesk) -> Response:
    """A user who is let in."""
    sent = scim.read_user(await read_body(desk.request), Context.RESOURCE_CREATION_REQUEST)
    user_id = secrets.token_hex(12)
    user = await desk.directory.change(
        desk.tenant_id, lambda people: scim.new_user(sent, user_id, people, desk.directory.naming, desk.now)
    )
    desk.note(None, user)
    return answer(scim.user_resource(user, desk.base), Context.RESOURCE_CREATION_RESPONSE, status=201)


@router.get("/Users/{user_id}")
async def show_user(desk: AtDesk, user_id: str) -> Response:
    """One user."""
    user = _user(desk.people, user_id)
    version = scim.user_version(user)
    if desk.conditions.is_known(version):
        return not_modified(version)
    return answer(scim.user_resource(user, desk.base), asked=shown_attributes(desk.request))


@router.put("/Users/{user_id}")
async def replace_user(desk: AtDesk, user_id: str) -> Response:
    """Takes over all attributes. Whether the user is active stays as it is where nothing is said of it."""
    sent = scim.read_user(await read_body(desk.request), Context.RESOURCE_REPLACEMENT_REQUEST)

    def replaced(user: UserRecord) -> scim.ScimUser:
        after = sent.model_copy(deep=True)
        after.active = user.is_active if after.active is None else after.active
        return after

    return await _change_user(desk, user_id, replaced)


@router.patch("/Users/{user_id}")
async def patch_user(desk: AtDesk, user_id: str) -> Response:
    """Changes some attributes."""
    body = await read_body(desk.request)

    def patched(user: UserRecord) -> scim.ScimUser:
        after = scim.user_resource(user, desk.base)
        scim_patch.patch_user(after, body)
        return after

    return await _change_user(desk, user_id, patched)


async def _change_user(desk: Desk, user_id: str, after: Callable[[UserRecord], scim.ScimUser]) -> Response:
    before: list[UserRecord] = []

    def make(people: People) -> UserRecord:
        before[:] = [_user(people, user_id)]
        desk.conditions.check(scim.user_version(before[0]))
        return scim.changed_user(before[0], after(before[0]), people, desk.directory.naming, desk.now)

    user = await desk.directory.change(desk.tenant_id, make)
    desk.note(before[0], user)
    return answer(scim.user_resource(user, desk.base))


@router.delete("/Users/{user_id}")
async def delete_user(desk: AtDesk, user_id: str) -> Response:
    """The user is let in by nothing any more that they were given before."""

    def deleted(people: People) -> UserRecord:
        user = _user(people, user_id)
        desk.conditions.check(scim.user_version(user))
        return scim.deleted_user(user, desk.now)

    desk.note(None, await desk.directory.change(desk.tenant_id, deleted))
    return Response(status_code=204)


@router.get("/Groups")
async def list_groups(desk: AtDesk) -> Response:
    """Groups, as a filter says."""
    people, named = desk.people, name_asked_for(desk.request, "displayName")
    groups = tuple(people.groups.values()) if named is None else (people.group_named(named),)
    asked = SearchRequest[Group].model_validate(query_of(desk.request), scim_policy=scim.POLICY)
    found = [group for group in groups if group is not None]
    return await page_of(ListResponse[Group], asked, found, lambda group: scim.group_resource(group, people, desk.base))


@router.post("/Groups")
async def create_group(desk: AtDesk) -> Response:
    """A group, whose members have it among their groups from now on."""
    sent = scim.read_group(await read_body(desk.request), Context.RESOURCE_CREATION_REQUEST)
    group_id = secrets.token_hex(12)
    group = await desk.directory.change(
        desk.tenant_id, lambda people: scim.new_group(sent, group_id, people, desk.directory.naming, desk.now)
    )
    resource = await asyncio.to_thread(scim.group_resource, group, desk.people, desk.base)
    return answer(resource, Context.RESOURCE_CREATION_RESPONSE, status=201)


@router.get("/Groups/{group_id}")
async def show_group(desk: AtDesk, group_id: str) -> Response:
    """One group."""
    people = desk.people
    group = _group(people, group_id)
    version = await asyncio.to_thread(scim.group_version, group, people)
    if desk.conditions.is_known(version):
        return not_modified(version)
    resource = await asyncio.to_thread(scim.group_resource, group, people, desk.base)
    return answer(resource, asked=shown_attributes(desk.request))


@router.put("/Groups/{group_id}")
async def replace_group(desk: AtDesk, group_id: str) -> Response:
    """Takes over name and members."""
    sent = scim.read_group(await read_body(desk.request), Context.RESOURCE_REPLACEMENT_REQUEST)
    return await _change_group(desk, group_id, lambda _group, _people: sent)


@router.patch("/Groups/{group_id}")
async def patch_group(desk: AtDesk, group_id: str) -> Response:
    """Changes the name, or some members."""
    body = await read_body(desk.request)

    def patched(group: GroupRecord, people: People) -> Group:
        after = scim.group_resource(group, people, desk.base)
        scim_patch.patch_group(after, body)
        return after

    return await _change_group(desk, group_id, patched)


async def _change_group(desk: Desk, group_id: str, after: Callable[[GroupRecord, People], Group]) -> Response:
    def make(people: People) -> GroupRecord:
        before = _group(people, group_id)
        desk.conditions.check(scim.group_version(before, people))
        return scim.changed_group(before, after(before, people), people, desk.directory.naming, desk.now)

    group = await desk.directory.change(desk.tenant_id, make)
    resource = await asyncio.to_thread(scim.group_resource, group, desk.people, desk.base)
    return answer(resource, asked=shown_attributes(desk.request))


@router.delete("/Groups/{group_id}")
async def delete_group(desk: AtDesk, group_id: str) -> Response:
    """Its members are not in it any more."""

    def found(people: People) -> GroupRecord:
        group = _group(people, group_id)
        desk.conditions.check(scim.group_version(group, people))
        return group

    await desk.directory.remove_group(desk.tenant_id, found)
    return Response(status_code=204)


def _user(people: People, user_id: str) -> UserRecord:
    user = people.live(user_id)
    if user is None:
        raise NotFoundException(detail=f"there is no user with the id {user_id!r}")
    return user


def _group(people: People, group_id: str) -> GroupRecord:
    group = people.groups.get(group_id)
    if group is None:
        raise NotFoundException(detail=f"there is no group with the id {group_id!r}")
    return group
