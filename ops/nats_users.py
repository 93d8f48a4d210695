"""The users of NATS: one for each service, with the rights to do with its own stores what the service does, and no others.

Buckets and object stores are streams (`KV_<bucket>`, `OBJ_<store>`). A user hears answers below `_INBOX.<user>` only. The
administrator is for `groundwork` itself and for people.

What this cannot keep apart: permissions are about subjects, not about what a request asks for. A service makes its own streams, and
a user that may make or change a stream may have the server copy another one into it. Only an account each would prevent that.
"""

import json
from collections.abc import Mapping
from typing import TypeVar

from kit.state import Bucket, ObjectBucket, Queue, Store, Stream
from ops.state import BELLS, QUEUES, STORES, USERS

ADMINISTRATOR = "groundwork"
S = TypeVar("S", bound=Store)


def written_by(user: str, kind: type[S]) -> list[S]:
    """The stores of one kind that a user reads and writes."""
    return [each for each in STORES if isinstance(each, kind) and user in each.written_by]


def publish_subjects(user: str) -> list[str]:
    """The subjects that a user may send to."""
    subjects = ["$JS.API.INFO"]
    for bucket in written_by(user, Bucket):
        subjects += [bucket.subjects, *_keep(bucket.stream), *_consume(bucket.stream)]
    for store in STORES:
        if user in store.read_by:
            subjects += _read(store.stream)
    for files in written_by(user, ObjectBucket):
        subjects += [files.subjects, *_keep(files.stream), *_consume(files.stream)]
        subjects.append(f"$JS.API.STREAM.MSG.DELETE.{files.stream}")
    for stream in written_by(user, Stream):
        subjects += [stream.subjects, *_keep(stream.stream), *_consume(stream.stream)]
    for queue in (each for each in QUEUES if user in (*each.filled_by, *each.written_by)):
        subjects += [queue.subjects, f"bells.{queue.subject}.*", *_keep(queue.stream)]
    for queue in _worked_by(user):
        subjects += _consume(queue.stream)
    erased = [each.stream for each in STORES if each.is_erased and user in each.written_by]
    return [*subjects, *(f"$JS.API.STREAM.MSG.DELETE.{stream}" for stream in erased), *_own_bells(user)]


def subscribe_subjects(user: str) -> list[str]:
    """The subjects that a user may hear, besides answers to itself."""
    bells = [f"bells.{queue.subject}.*" for queue in _worked_by(user)]
    republished = [f"{each.republished}.*.*" for each in written_by(user, Stream) if each.republished]
    return [*bells, *_own_bells(user), *republished]


def authorization(passwords: Mapping[str, str]) -> str:
    """The `authorization` block of nats-server's configuration. `passwords` by user, the administrator's among them."""
    users: list[dict[str, object]] = [{"user": ADMINISTRATOR, "password": passwords[ADMINISTRATOR]}]
    users += [_user(name, passwords[name]) for name in USERS]
    return f"authorization {{ users: {json.dumps(users, indent=2)} }}\n"


def password_variable(user: str) -> str:
    """The environment variable in which a nats-server of a cluster finds a user's password."""
    return f"GROUNDWORK_NATS_PASSWORD_{user.upper().replace('-', '_')}"


def authorization_by_environment() -> str:
    """The same block for a configuration that many may read: nats-server takes the passwords from its environment."""
    references = {name: f"${password_variable(name)}" for name in (ADMINISTRATOR, *USERS)}
    text = authorization(references)
    for reference in references.values():
        text = text.replace(json.dumps(reference), reference)
    return text


def _user(name: str, password: str) -> dict[str, object]:
    heard = [f"_INBOX.{name}.>", *subscribe_subjects(name)]
    permissions = {"publish": {"allow": publish_subjects(name)}, "subscribe": {"allow": heard}}
    return {"user": name, "password": password, "permissions": permissions}


def _worked_by(user: str) -> list[Queue]:
    return [queue for queue in QUEUES if user in queue.written_by]


def _own_bells(user: str) -> list[str]:
    return [f"bells.{bell.name}.*" for bell in BELLS if user in bell.rung_by]


def _keep(stream: str) -> list[str]:
    """Making and reading a stream, but not removing it."""
    return [
        *(f"$JS.API.STREAM.{verb}.{stream}" for verb in ("CREATE", "INFO", "UPDATE", "MSG.GET")),
        f"$JS.API.DIRECT.GET.{stream}",
        f"$JS.API.DIRECT.GET.{stream}.>",
    ]


def _read(stream: str) -> list[str]:
    """Reading and following a stream, or making it, but neither changing it nor what is in it."""
    unchanging = ("CREATE", "INFO", "MSG.GET")
    return [
        *(f"$JS.API.STREAM.{verb}.{stream}" for verb in unchanging),
        *(subject for subject in _keep(stream) if ".DIRECT." in subject),
        *(subject for subject in _consume(stream) if ".STREAM.PURGE." not in subject),
    ]


def _consume(stream: str) -> list[str]:
    """Following a stream, taking jobs from it, and emptying it."""
    return [
        f"$JS.API.STREAM.PURGE.{stream}",
        f"$JS.API.CONSUMER.CREATE.{stream}",
        f"$JS.API.CONSUMER.CREATE.{stream}.>",
        f"$JS.API.CONSUMER.DURABLE.CREATE.{stream}.*",
        *(f"$JS.API.CONSUMER.{verb}.{stream}.*" for verb in ("INFO", "DELETE", "MSG.NEXT")),
        f"$JS.ACK.{stream}.>",
        f"$JS.FC.{stream}.>",
    ]
