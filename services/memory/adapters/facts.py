"""Facts in NATS key-value buckets: facts in MEMORY_FACTS, profiles in MEMORY_PROFILES, marks of learnt turns in MEMORY_TURNS."""

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from kit.errors import Aborted
from kit.jetstream import KeyValue, Nats
from kit.records import UNREADABLE, set_aside
from services.memory.facts.models import Fact, FactKind, Plan, Profile, StoredFact
from services.memory.models import Owner
from services.memory.state import FACTS, PROFILES, TURNS, owner_key


class NatsFactStore:
    """A FactStore. Keys are `<tenant>.<owner>…`, so that listing is the server's work."""

    def __init__(self, facts: KeyValue, profiles: KeyValue, turns: KeyValue) -> None:
        self._facts = facts
        self._profiles = profiles
        self._turns = turns

    @classmethod
    async def open(cls, nats: Nats) -> "NatsFactStore":
        """Opens the buckets, making them on first use."""
        return cls(
            await KeyValue.open(nats, FACTS.name, erases=FACTS.is_erased),
            await KeyValue.open(nats, PROFILES.name, erases=PROFILES.is_erased),
            await KeyValue.open(nats, TURNS.name, ttl_s=TURNS.kept_for_s),
        )

    async def profile(self, owner: Owner) -> tuple[Profile, int]:
        entry = await self._profiles.get(_owner(owner))
        if entry is None or entry.value is None:
            return Profile(), 0
        try:
            return decode_profile(entry.value), entry.revision
        except UNREADABLE as error:
            set_aside(PROFILES.name, entry.key, error)
            return Profile(), entry.revision

    async def set_profile(self, owner: Owner, profile: Profile, revision: int) -> int:
        return await self._profiles.update(_owner(owner), encode_profile(profile), revision)

    async def add(self, owner: Owner, fact: Fact) -> None:
        with suppress(Aborted):  # it is there, or the mark of its forgetting is
            await self._facts.update(_key(owner, fact.fact_id), encode_fact(fact), 0)

    async def get(self, owner: Owner, fact_id: str) -> StoredFact | None:
        if not _is_id(fact_id):
            return None
        entry = await self._facts.get(_key(owner, fact_id))
        fact = _decoded(entry.key, entry.value) if entry and entry.value is not None else None
        return StoredFact(fact, entry.revision) if entry and fact else None

    async def update(self, owner: Owner, fact: Fact, revision: int) -> None:
        await self._facts.update(_key(owner, fact.fact_id), encode_fact(fact), revision)

    async def forget(self, owner: Owner, fact_id: str) -> None:
        if _is_id(fact_id):
            await self._facts.purge(_key(owner, fact_id))

    async def facts(self, owner: Owner) -> list[Fact]:
        found = [_decoded(entry.key, entry.value or b"") async for entry in self._facts.entries(f"{_owner(owner)}.*")]
        return [fact for fact in found if fact is not None]

    async def is_learnt(self, owner: Owner, run_id: str) -> bool:
        return await self._turns.get(_key(owner, run_id)) is not None

    async def mark_learnt(self, owner: Owner, run_id: str) -> None:
        await self._turns.put(_key(owner, run_id), b"1")


def encode_fact(fact: Fact) -> bytes:
    return json.dumps(_record(fact), ensure_ascii=False).encode()


def decode_fact(value: bytes) -> Fact:
    """Raises one of kit.records.UNREADABLE."""
    return _fact(json.loads(value))


def encode_profile(profile: Profile) -> bytes:
    pending = profile.pending
    record = {
        "paused": profile.paused,
        "version": profile.version,
        "summary": profile.summary,
        "summary_version": profile.summary_version,
        "forgotten_at": _written(profile.forgotten_at),
        "forgotten_threads": {thread: _written(at) for thread, at in profile.forgotten_threads.items()},
        "pending": pending
        and {
            "run_id": pending.run_id,
            "added": [_record(fact) for fact in pending.added],
            "superseded": dict(pending.superseded),
        },
    }
    return json.dumps(dict(profile.newer_fields) | record, ensure_ascii=False).encode()


def decode_profile(value: bytes) -> Profile:
    """Raises one of kit.records.UNREADABLE."""
    record: dict[str, Any] = json.loads(value)
    pending = record.pop("pending", None)
    return Profile(
        paused=record.pop("paused"),
        version=record.pop("version"),
        summary=record.pop("summary", ""),
        summary_version=record.pop("summary_version", 0),
        forgotten_at=_read(record.pop("forgotten_at", None)),
        forgotten_threads={
            thread: datetime.fromisoformat(at) for thread, at in record.pop("forgotten_threads", {}).items()
        },
        pending=pending
        and Plan(pending["run_id"], [_fact(each) for each in pending["added"]], dict(pending["superseded"])),
        newer_fields=record,
    )


def _decoded(key: str, value: bytes) -> Fact | None:
    try:
        return decode_fact(value)
    except UNREADABLE as error:
        set_aside(FACTS.name, key, error)
        return None


def _record(fact: Fact) -> dict[str, Any]:
    return dict(fact.newer_fields) | {
        "fact_id": fact.fact_id,
        "text": fact.text,
        "kind": fact.kind.value if fact.kind is not FactKind.UNKNOWN else fact.newer_fields.get("kind", "unknown"),
        "learnt_at": _written(fact.learnt_at),
        "valid_from": _written(fact.valid_from),
        "valid_to": _written(fact.valid_to),
        "confidence": fact.confidence,
        "run_id": fact.run_id,
        "thread_id": fact.thread_id,
        "said": fact.said,
        "slot": fact.slot,
        "answer": fact.answer,
        "superseded_by": fact.superseded_by,
        "learnt_by": fact.learnt_by,
        "edited_at": _written(fact.edited_at),
    }


def _fact(stored: Mapping[str, Any]) -> Fact:
    record = dict(stored)
    kind = record.pop("kind")
    if kind not in set(FactKind):
        record["kind"] = kind  # kept for who knows it
    return Fact(
        record.pop("fact_id"),
        record.pop("text"),
        FactKind(kind) if kind in set(FactKind) else FactKind.UNKNOWN,
        learnt_at=datetime.fromisoformat(record.pop("learnt_at")),
        valid_from=datetime.fromisoformat(record.pop("valid_from")),
        valid_to=_read(record.pop("valid_to", None)),
        confidence=record.pop("confidence", 1.0),
        run_id=record.pop("run_id", ""),
        thread_id=record.pop("thread_id", ""),
        said=record.pop("said", ""),
        slot=record.pop("slot", ""),
        answer=record.pop("answer", ""),
        superseded_by=record.pop("superseded_by", ""),
        learnt_by=record.pop("learnt_by", ""),
        edited_at=_read(record.pop("edited_at", None)),
        newer_fields=record,
    )


def _written(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None


def _read(at: str | None) -> datetime | None:
    return datetime.fromisoformat(at) if at else None


def _is_id(fact_id: str) -> bool:
    return len(fact_id) == 32 and all(char in "0123456789abcdef" for char in fact_id)


def _owner(owner: Owner) -> str:
    return owner_key(owner.tenant_id, owner.subject)


def _key(owner: Owner, item_id: str) -> str:
    return f"{_owner(owner)}.{item_id}"
