"""Who holds which role on Ann's collection, and what asking for her things comes to for each of them."""

import re
from dataclasses import dataclass
from enum import StrEnum

from groundwork.ingest.v1 import ingest_pb2

from kit.access.principal import Principal, use_principal
from kit.stores.collections import Role
from kit.testing.harness import USER_SCOPES
from tests.service.access.world import ANN, SECRET, TIMEOUT_S, UNREADABLE, World, read_document

SHARED = frozenset({"collection", "document", "revision", "chunk", "dead letter", "source"})
"""Kinds of ids of what a role on the collection opens. All else belongs to a subject, and no role opens it."""
_ROLES = {
    Role.VIEWER: ingest_pb2.COLLECTION_ROLE_VIEWER,
    Role.EDITOR: ingest_pb2.COLLECTION_ROLE_EDITOR,
    Role.OWNER: ingest_pb2.COLLECTION_ROLE_OWNER,
}
_KINDS = {
    "subject": ingest_pb2.COLLECTION_MEMBER_KIND_SUBJECT,
    "group": ingest_pb2.COLLECTION_MEMBER_KIND_GROUP,
}


@dataclass(frozen=True)
class Holder:
    """Somebody of Ann's tenant with a role on her collection, or with none."""

    role: Role | None
    kind: str

    @property
    def name(self) -> str:
        return f"{self.role or 'none'}_by_{self.kind}"

    @property
    def principal(self) -> Principal:
        groups = {self.name} if self.kind == "group" else set()
        return Principal(ANN.tenant_id, f"x-{self.name}", USER_SCOPES, groups=frozenset(groups))

    def has(self, needed: Role | None) -> bool:
        """Whether the role is enough. None: no role is."""
        return self.role is not None and needed is not None and self.role.includes(needed)


HOLDERS = tuple(Holder(role, kind) for role in (None, *Role) for kind in _KINDS)


class Outcome(StrEnum):
    """What a request comes to."""

    HIDDEN = "hidden"
    """The answer is the one about what does not exist."""
    REFUSED = "refused"
    """The answer says that the role is not enough."""
    ALLOWED = "allowed"


def outcome(of_theirs: str, of_nobodys: str) -> Outcome:
    """By what is told of Ann's id and of an id of nothing."""
    if of_theirs == of_nobodys:
        return Outcome.HIDDEN
    return Outcome.REFUSED if re.search(r"\bnot_yours\b", of_theirs, re.IGNORECASE) else Outcome.ALLOWED


def expected(holder: Holder, needed: Role | None, *, is_silent: bool = False) -> Outcome:
    """Members of the collection are told that a role is missing; everybody else learns nothing."""
    if holder.has(needed):
        return Outcome.ALLOWED
    return Outcome.HIDDEN if is_silent or holder.role is None or needed is None else Outcome.REFUSED


async def share(world: World, collection_id: str) -> None:
    """Gives all holders their role."""
    for holder in HOLDERS:
        if holder.role is None:
            continue
        name = holder.name if holder.kind == "group" else holder.principal.subject
        member = ingest_pb2.CollectionMember(kind=_KINDS[holder.kind], name=name, role=_ROLES[holder.role])
        request = ingest_pb2.SetCollectionMemberRequest(collection_id=collection_id, member=member)
        with use_principal(ANN):
            await world.stub("ingest").SetCollectionMember(request, timeout=TIMEOUT_S)


class Spares:
    """Things of Ann's that a request may use up."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._made = 0

    async def make(self, kind: str) -> dict[str, str]:
        """A new thing of a kind, as ids."""
        self._made += 1
        stub, name = self._world.stub("ingest"), f"spare-{self._made}"
        with use_principal(ANN):
            match kind:
                case "document":
                    return {kind: await read_document(self._world, f"{name}.md", f"# {SECRET}\n\n{name}")}
                case "dead letter":
                    await read_document(self._world, f"{name}-{UNREADABLE}.md", f"# {SECRET}\n\n{name} {UNREADABLE}.")
                    letters = await stub.ListDeadLetters(ingest_pb2.ListDeadLettersRequest(), timeout=TIMEOUT_S)
                    return {kind: letters.dead_letters[0].dead_letter_id}
                case "source":
                    new = ingest_pb2.CreateSourceRequest(
                        kind="feed",
                        collection_id=self._world.things.ids["collection"],
                        name=name,
                        settings={"url": "http://127.0.0.1:9/feed.xml"},
                    )
                    return {kind: (await stub.CreateSource(new, timeout=TIMEOUT_S)).source.source_id}
                case "collection":
                    await stub.CreateCollection(
                        ingest_pb2.CreateCollectionRequest(collection_id=name), timeout=TIMEOUT_S
                    )
                    await share(self._world, name)
                    return {kind: name}
        raise AssertionError(f"nothing of the kind {kind} is made here")
