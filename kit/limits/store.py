"""Limits in the message store: the rules in the bucket LIMIT_RULES, and the counters in LIMIT_COUNTS and, of seconds and
minutes, in LIMIT_RATES. These are streams whose server adds up what is sent to a subject (NATS, ADR-49): all processes count as
one."""

import base64
import json
import secrets
from collections.abc import Sequence
from typing import Any

from nats.js import api
from nats.js.errors import NoStreamResponseError, NotFoundError

from kit.jetstream import Entry, Nats
from kit.jetstream.opening import patient
from kit.limits.counters import Counter
from kit.limits.rules import EACH, Limit, Per, Rules, Scope, What, Whose
from kit.shared_state import LIMIT_COUNTS, LIMIT_RATES, LIMIT_RULES
from kit.state import Stream
from kit.stores.followed_settings import FollowedSettings

_INCREMENT = "Nats-Incr"
_SHORT = (Per.SECOND.value, Per.MINUTE.value)
"""Begin the names of windows whose counts are soon of no use."""
_ALL_TENANTS = "_all"
"""Instead of a tenant's name: none begins with an underscore."""


class JetStreamCounters:
    """Counters over one NATS connection."""

    def __init__(self, nats: Nats) -> None:
        self._nats = nats

    @classmethod
    @patient
    async def open(cls, nats: Nats) -> "JetStreamCounters":
        """Raises Unavailable."""
        for stream in (LIMIT_COUNTS, LIMIT_RATES):
            await nats.ensure_stream(_config(stream))
        return cls(nats)

    async def add(self, counter: Counter, amount: int, once: str = "") -> int:
        stream, subject = _stream(counter), _subject(counter)
        # An id in any case: what is sent again for want of an answer must not count twice.
        headers = {_INCREMENT: f"{amount:+d}", api.Header.MSG_ID.value: f"{once or secrets.token_hex(8)}.{subject}"}

        async def send(timeout_s: float) -> str | None:
            # Copied: the client adds to the headers that it is given.
            return (await self._nats.js.publish(subject, timeout=timeout_s, headers=dict(headers))).val

        async def send_to_stream(timeout_s: float) -> str | None:
            try:
                return await send(timeout_s)
            except NoStreamResponseError:  # it was in the memory of a server that has begun anew
                await self._nats.ensure_stream(_config(stream))
                return await send(timeout_s)

        total = await self._nats.persist(f"stream {stream.stream}", send_to_stream)
        return await self.value(counter) if total is None else int(total)  # None: it was added before

    async def value(self, counter: Counter) -> int:
        try:
            message = await self._nats.last_message(_stream(counter).stream, _subject(counter))
        except NotFoundError:
            return 0
        return int(json.loads(message.data or b"{}")["val"])


class LimitRules:
    """Sets rules for all processes, and has this one apply what any of them sets."""

    def __init__(self) -> None:
        """`open` makes it."""
        self.rules = Rules()
        self.settings: FollowedSettings

    @classmethod
    async def open(cls, nats: Nats) -> "LimitRules":
        """Returns the rules with what is stored already in force. Raises Unavailable."""
        opened = cls()
        opened.settings = await FollowedSettings.open(nats, LIMIT_RULES.name, opened._apply)
        return opened

    async def set(self, whose: Whose, limits: Sequence[Limit]) -> None:
        """Returns when this process applies it. Harmless when repeated. Raises Unavailable."""
        await self.settings.put(_place(whose), _encoded(limits))

    async def _apply(self, entry: Entry) -> None:
        self.rules.set(_whose(entry.key), _decoded(entry.value or b"[]"))


def _config(stream: Stream) -> api.StreamConfig:
    return api.StreamConfig(
        name=stream.stream,
        subjects=[stream.subjects],
        # A request does not wait for a disk.
        storage=api.StorageType.MEMORY if stream is LIMIT_RATES else api.StorageType.FILE,
        max_age=stream.kept_for_s,
        max_msgs_per_subject=1,
        allow_direct=True,
        allow_msg_counter=True,
    )


def _stream(counter: Counter) -> Stream:
    return LIMIT_RATES if counter.window.startswith(_SHORT) else LIMIT_COUNTS


def _subject(counter: Counter) -> str:
    return f"{_stream(counter).prefix}{counter.whose.tenant_id or _ALL_TENANTS}.{_word(counter)}"


def _word(counter: Counter) -> str:
    parts = [counter.whose.scope.value, counter.what.value, counter.window, _coded(counter.whose.member)]
    return "/".join(part for part in parts if part)


def _place(whose: Whose) -> str:
    """Key of a rule: `<scope>.<tenant>.<user, group or key>`, as far as it has these."""
    tenant = "=" if whose.tenant_id == EACH else whose.tenant_id
    subject = "=" if whose.member == EACH else _coded(whose.member)
    return ".".join(part for part in (whose.scope.value, tenant, subject) if part)


def _whose(place: str) -> Whose:
    """Raises one of UNREADABLE."""
    scope, tenant, subject, *_ = [*place.split("."), "", ""]
    return Whose(
        Scope(scope),
        EACH if tenant == "=" else tenant,
        EACH if subject == "=" else base64.urlsafe_b64decode(subject + "=" * (-len(subject) % 4)).decode(),
    )


def _coded(member: str) -> str:
    """A name in letters that a key may have."""
    return base64.urlsafe_b64encode(member.encode()).decode().rstrip("=")


def _encoded(limits: Sequence[Limit]) -> bytes:
    return json.dumps([{"what": e.what.value, "amount": e.amount, "per": e.per.value} for e in limits]).encode()


def _decoded(value: bytes) -> Sequence[Limit]:
    """Raises one of UNREADABLE."""
    data: list[dict[str, Any]] = json.loads(value)
    return [Limit(What(each["what"]), float(each["amount"]), Per(each["per"])) for each in data]
