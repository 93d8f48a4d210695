"""What was found wrong with the stored data: written by the process that compares it, shown by /readyz, kept until a person has
seen it."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields

from kit.errors import Aborted, AlreadyExists
from kit.jetstream.connection import Nats
from kit.jetstream.kv import Entry, KeyValue
from kit.records import UNREADABLE, set_aside
from kit.shared_state import STORE_CONDITION

FINDINGS_MAX = 50
"""Of one source; the oldest go first. Each names its examples, not everything."""


@dataclass(frozen=True)
class Finding:
    """One thing that is, or was, wrong with the data."""

    kind: str
    """What, as a constant: `entries_missing`, `files_missing`, …"""
    where: str
    """The bucket or stream."""
    count: int
    repaired: int
    """How many of them were put right."""
    detail: str
    """What happened, in a sentence."""
    advice: str
    """What a person can do, in a sentence; empty when there is nothing to do."""
    examples: tuple[str, ...]
    found_at: str
    """ISO 8601."""


class StoreCondition:
    """The findings of each source. All methods raise Unavailable when the server does not answer."""

    def __init__(self, bucket: KeyValue) -> None:
        self._bucket = bucket

    @classmethod
    async def open(cls, nats: Nats) -> "StoreCondition":
        return cls(await KeyValue.open(nats, STORE_CONDITION.name))

    async def findings(self, *, besides: str = "") -> list[Finding]:
        """All that nobody has accepted yet, by age; with `besides` without those of one source."""
        found = [
            finding async for entry in self._bucket.entries(">") if entry.key != besides for finding in _decode(entry)
        ]
        return sorted(found, key=lambda finding: finding.found_at)

    async def add(self, source: str, findings: Sequence[Finding]) -> None:
        """Keeps new findings beside those that are there."""
        while findings:
            with suppress(Aborted, AlreadyExists):
                entry = await self._bucket.get(source)
                if entry is None:
                    await self._bucket.create(source, _encode(findings))
                else:
                    kept = [*_decode(entry), *findings][-FINDINGS_MAX:]
                    await self._bucket.update(source, _encode(kept), entry.revision)
                return

    async def set(self, source: str, findings: Sequence[Finding]) -> bool:
        """What a source finds now, instead of what it found before. Whether that is news; only then something is written."""
        entry = await self._bucket.get(source)
        before = _decode(entry) if entry else []
        if [_timeless(finding) for finding in before] == [_timeless(finding) for finding in findings]:
            return False
        await self._bucket.put(source, _encode(findings))
        return True

    async def accept(self) -> int:
        """A person has seen them: forgets all. Returns how many there were."""
        found = await self.findings()
        for key in [entry.key async for entry in self._bucket.entries(">")]:
            await self._bucket.purge(key)
        return len(found)


def _encode(findings: Sequence[Finding]) -> bytes:
    return json.dumps([asdict(finding) for finding in findings], ensure_ascii=False).encode()


def _decode(entry: Entry) -> list[Finding]:
    """None of an entry that is damaged itself."""
    names = {field.name for field in fields(Finding)}
    try:
        found = [
            {name: value for name, value in each.items() if name in names} for each in json.loads(entry.value or b"[]")
        ]
        return [Finding(**{**each, "examples": tuple(each["examples"])}) for each in found]
    except UNREADABLE as error:
        set_aside(STORE_CONDITION.name, entry.key, error)
        return []


def _timeless(finding: Finding) -> dict[str, object]:
    return {**asdict(finding), "found_at": ""}
