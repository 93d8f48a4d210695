"""Limits in the message store: the rules in the bucket LIMIT_RULES, and the counters in LIMIT_COUNTS, or LIMIT_RATES and
LIMIT_SECONDS of minutes and seconds, or LIMIT_CREDITS. These are streams whose server adds up what is sent to a subject (NATS,
ADR-49): all processes count as one."""

import base64
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from nats.js import api
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError

from kit.errors import FailedPrecondition, Unavailable
from kit.jetstream import Entry, Nats
from kit.jetstream.opening import patient
from kit.limits.counters import Counter
from kit.limits.rules import EACH, Limit, Per, Rules, Scope, What, Whose
from kit.records import set_aside
from kit.shared_state import LIMIT_COUNTS, LIMIT_CREDITS, LIMIT_RATES, LIMIT_RULES, LIMIT_SECONDS
from kit.state import Stream
from kit.stores.followed_settings import FollowedSettings

_INCREMENT = "Nats-Incr"
_IN_MEMORY = (LIMIT_RATES, LIMIT_SECONDS)
_ALL_TENANTS = "_all"
"""Instead of a tenant's name: none begins with an underscore."""


class JetStreamCounters:
    """Counters over one NATS connection."""

    def __init__(self, nats: Nats) -> None:
        self._nats = nats

    @classmethod
    @patient
    async def open(cls, nats: Nats, streams: Iterable[Stream] = (LIMIT_COUNTS, *_IN_MEMORY)) -> "JetStreamCounters":
        """Counts in these streams alone. Raises Unavailable."""
        for stream in streams:
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

        with _refusals_explained(stream):
            total = await self._nats.persist(f"stream {stream.stream}", send_to_stream)
        return await self.value(counter) if total is None else int(total)  # None: it was added before

    async def value(self, counter: Counter) -> int:
        stream = _stream(counter)
        try:
            with _refusals_explained(stream):
                message = await self._nats.last_message(stream.stream, _subject(counter))
        except NotFoundError:
            return 0
        return int(json.loads(message.data or b"{}")["val"])


class LimitRules:
    """Sets rules for all processes, and has this one apply what any of them sets."""

    def __init__(self, defaults: Mapping[Whose, Sequence[Limit]] | None = None) -> None:
        """`open` makes it."""
        self.rules = Rules(defaults)
        self.settings: FollowedSettings

    @classmethod
    async def open(cls, nats: Nats, defaults: Mapping[Whose, Sequence[Limit]] | None = None) -> "LimitRules":
        """Returns the rules with what is stored already in force. `defaults` as of Rules. Raises Unavailable."""
        opened = cls(defaults)
        opened.settings = await FollowedSettings.open(nats, LIMIT_RULES.name, opened._apply)
        return opened

    async def set(self, whose: Whose, limits: Sequence[Limit]) -> None:
        """Returns when this process applies it. Harmless when repeated. Raises Unavailable."""
        await self.settings.put(_place(whose), _encoded(limits))

    async def _apply(self, entry: Entry) -> None:
        self.rules.set(_whose(entry.key), _decoded(entry.value or b"[]", entry.key))


def _config(stream: Stream) -> api.StreamConfig:
    return api.StreamConfig(
        name=stream.stream,
        subjects=[stream.subjects],
        # A request does not wait for a disk.
        storage=api.StorageType.MEMORY if stream in _IN_MEMORY else api.StorageType.FILE,
        max_age=stream.kept_for_s,
        max_msgs_per_subject=1,
        allow_direct=True,
        allow_msg_counter=True,
    )


def _stream(counter: Counter) -> Stream:
    if counter.is_balance:
        return LIMIT_CREDITS
    if not counter.is_rate:
        return LIMIT_COUNTS
    return LIMIT_SECONDS if counter.window.startswith(Per.SECOND.value) else LIMIT_RATES


@contextmanager
def _refusals_explained(stream: Stream) -> Iterator[None]:
    """Raises Unavailable where the server refuses to count, or has no place for the stream: counting can be done without."""
    try:
        yield
    except NotFoundError:
        raise
    except (APIError, FailedPrecondition) as error:
        said = getattr(error, "description", None) or str(error) or type(error).__name__
        raise Unavailable(f"stream {stream.stream}: the message store does not count ({said})") from error


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


def _decoded(value: bytes, key: str = "") -> Sequence[Limit]:
    """Without limits of a newer version, whose words this one does not know. Raises one of UNREADABLE."""
    limits = []
    for each in json.loads(value):
        try:
            what, per = What(each["what"]), Per(each["per"])
        except ValueError as error:
            set_aside(LIMIT_RULES.name, key, error)
            continue
        limits.append(Limit(what, float(each["amount"]), per))
    return limits
