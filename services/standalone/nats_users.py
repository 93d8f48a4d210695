"""The users of NATS: one for each service, who may do with its own streams what the service does, and nothing with another's.

Buckets and object stores are streams (`KV_<bucket>`, `OBJ_<store>`). A user hears answers below `_INBOX.<user>` only. The
administrator is for `groundwork` itself and for people.

What this cannot keep apart: permissions are about subjects, not about what a request asks for. A service makes its own streams, and
whoever may make or change a stream may have the server copy another one into it. Only an account each would prevent that.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

ADMINISTRATOR = "groundwork"


@dataclass(frozen=True)
class Access:
    """What a service uses of JetStream."""

    buckets: tuple[str, ...] = ()
    """Key-value buckets: read, written, watched."""
    read_buckets: tuple[str, ...] = ()
    """Another service's buckets: made where they are not there yet, read and watched, but never written."""
    stores: tuple[str, ...] = ()
    """Object stores."""
    streams: Mapping[str, str] = field(default_factory=dict)
    """Other streams that are written and read, with the subjects that are published to."""
    filled: Mapping[str, str] = field(default_factory=dict)
    """Work queues that jobs are put into, but not taken from, with the prefix of their subjects."""
    queues: Mapping[str, str] = field(default_factory=dict)
    """Work queues that jobs are put into and taken from, likewise."""

    bells: tuple[str, ...] = ()
    """Bells that are rung and heard, besides those of the queues."""
    republished: tuple[str, ...] = ()
    """Subjects on which the server sends on what its streams have stored."""

    def publish(self) -> list[str]:
        """The subjects that the service may send to."""
        subjects = ["$JS.API.INFO"]
        for bucket in self.buckets:
            subjects += [f"$KV.{bucket}.>", *_kept(f"KV_{bucket}"), *_consumed(f"KV_{bucket}")]
        for bucket in self.read_buckets:
            subjects += _read(f"KV_{bucket}")
        for store in self.stores:
            stream = f"OBJ_{store}"
            subjects += [f"$O.{store}.>", *_kept(stream), *_consumed(stream), f"$JS.API.STREAM.MSG.DELETE.{stream}"]
        for stream, published in self.streams.items():
            subjects += [published, *_kept(stream), *_consumed(stream)]
        for stream, prefix in {**self.filled, **self.queues}.items():
            subjects += [f"{prefix}.>", f"bells.{prefix}.*", *_kept(stream)]
        for stream in self.queues:
            subjects += _consumed(stream)
        return [*subjects, *(f"bells.{name}.*" for name in self.bells)]

    def subscribe(self) -> list[str]:
        """The subjects that the service may hear, besides answers to itself."""
        return [*(f"bells.{name}.*" for name in (*self.queues.values(), *self.bells)), *self.republished]


_INGEST_BUCKETS = ("COLLECTIONS", "DEAD_LETTERS", "DOCUMENTS", "DOCUMENT_NAMES", "INGEST_LEASES", "STORE_CONDITION")

ACCESS: Mapping[str, Access] = {
    "gateway": Access(buckets=("API_KEYS", "API_KEY_USES")),
    "retriever": Access(
        buckets=("ACTIVE_REVISIONS", "COLLECTION_MODELS", "RETRIEVER_LEASES"), read_buckets=("COLLECTIONS",)
    ),
    "memory": Access(
        buckets=("MEMORY_KEYS", "THREADS", "THREAD_MESSAGES"), filled={"FORGET": "forget"}, queues={"MEMORY": "memory"}
    ),
    "ingest": Access(
        (*_INGEST_BUCKETS, "INGEST_KEYS"), stores=("FILES",), filled={"FORGET": "forget", "INGEST": "ingest"}
    ),
    "ingest-worker": Access(
        _INGEST_BUCKETS, stores=("FILES",), filled={"FORGET": "forget"}, queues={"INGEST": "ingest"}
    ),
    "tools": Access(buckets=("TOOL_CALLS",)),
    "orchestrator": Access(
        buckets=(
            "FORGOTTEN",
            "MODEL_CREDENTIALS",
            "MODEL_SETTINGS",
            "RUN_ACTIVE",
            "RUN_CANCELS",
            "RUN_COSTS",
            "RUN_KEYS",
            "RUN_LEASES",
            "RUN_OWNERS",
            "RUN_RECORDS",
            "RUN_SOURCES",
        ),
        streams={"RUNS": "runs.*.*"},
        queues={"FORGET": "forget"},
        bells=("runs",),
        republished=("logged.*.*",),
    ),
}
"""The services that use NATS. The others have no user."""


def authorization(passwords: Mapping[str, str]) -> str:
    """The `authorization` block of nats-server's configuration. `passwords` by user, the administrator's among them."""
    users: list[dict[str, object]] = [{"user": ADMINISTRATOR, "password": passwords[ADMINISTRATOR]}]
    users += [_user(name, passwords[name], access) for name, access in ACCESS.items()]
    return f"authorization {{ users: {json.dumps(users, indent=2)} }}\n"


def password_variable(user: str) -> str:
    """The environment variable in which a nats-server of a cluster finds a user's password."""
    return f"GROUNDWORK_NATS_PASSWORD_{user.upper().replace('-', '_')}"


def authorization_by_environment() -> str:
    """Likewise for a configuration that many may read: nats-server takes the passwords from its environment."""
    references = {name: f"${password_variable(name)}" for name in (ADMINISTRATOR, *ACCESS)}
    text = authorization(references)
    for reference in references.values():
        text = text.replace(json.dumps(reference), reference)
    return text


def _user(name: str, password: str, access: Access) -> dict[str, object]:
    heard = [f"_INBOX.{name}.>", *access.subscribe()]
    permissions = {"publish": {"allow": access.publish()}, "subscribe": {"allow": heard}}
    return {"user": name, "password": password, "permissions": permissions}


def _kept(stream: str) -> list[str]:
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
        *(subject for subject in _kept(stream) if ".DIRECT." in subject),
        *(subject for subject in _consumed(stream) if ".STREAM.PURGE." not in subject),
    ]


def _consumed(stream: str) -> list[str]:
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
