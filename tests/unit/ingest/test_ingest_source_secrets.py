"""Secrets that a service exchanges for others are kept where the source has its own."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kit.errors import Unavailable
from services.ingest.sources import opening
from services.ingest.sources.models import SourceRecord
from services.ingest.sources.opening import SourceOpener, StoredSecrets
from tests.unit.ingest.fakes import FakeSourceStore
from tests.unit.ingest.source_steps import PlainSealer

GIVEN = {"client_id": "groundwork", "refresh_token": "first"}


class Kept:
    """A source with secrets, in a store that may be away."""

    def __init__(self) -> None:
        anything: Any = None
        self.sources = FakeSourceStore()
        self.opener = SourceOpener({}, PlainSealer(), anything, self.sources)
        now = datetime(2026, 1, 1, tzinfo=UTC)
        self.record = self.opener.seal(SourceRecord("t", "ab" * 8, "drive", "n", "default", "ann", now, 900), GIVEN)

    async def begin(self) -> StoredSecrets:
        await self.sources.create(self.record)
        return StoredSecrets(self.opener, self.sources, self.record)

    async def stored(self) -> dict[str, str]:
        found = await self.sources.get(*self.record.place)
        assert found is not None
        return dict(self.opener.secrets_of(found))


async def test_token_that_a_service_gave_out_instead_is_kept_beside_the_other_secrets() -> None:
    kept = Kept()
    secrets = await kept.begin()
    for token in ("second", "third"):
        await secrets.exchange({"refresh_token": token})
        assert await kept.stored() == {**GIVEN, "refresh_token": token} == await secrets.read()


async def test_secrets_that_a_person_gave_meanwhile_win() -> None:
    kept = Kept()
    secrets = await kept.begin()
    given = {"client_id": "other", "refresh_token": "theirs"}
    await kept.sources.change(*kept.record.place, lambda now: kept.opener.seal(now, given))
    await secrets.exchange({"refresh_token": "second"})
    assert await kept.stored() == given == await secrets.read()


@pytest.mark.parametrize("tries", [2, 99])
async def test_token_waits_for_a_store_that_is_away(monkeypatch: pytest.MonkeyPatch, tries: int) -> None:
    monkeypatch.setattr(opening, "_PAUSES_S", (0.0, 0.0, 0.0))
    kept = Kept()
    secrets = await kept.begin()
    change, left = kept.sources.change, [tries]

    async def fail(*args: Any) -> Any:
        if left[0]:
            left[0] -= 1
            raise Unavailable("the store is away")
        return await change(*args)

    monkeypatch.setattr(kept.sources, "change", fail)
    if tries == 2:
        await secrets.exchange({"refresh_token": "second"})
        assert (await kept.stored())["refresh_token"] == "second"
    else:
        with pytest.raises(Unavailable):
            await secrets.exchange({"refresh_token": "second"})
