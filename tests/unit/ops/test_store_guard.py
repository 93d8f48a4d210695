"""The watch over the message store when the system stops."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from kit.testing.nats import NatsServer
from ops.watch.guard import StoreGuard
from ops.watch.keeper import Keeper
from services.standalone.storage.data_dir import open_data_dir
from tests.unit.standalone.conftest import WAIT_S


@pytest.mark.parametrize("is_killed", [False, True])
async def test_the_last_state_is_noted_unless_the_store_has_gone(
    nats: NatsServer, tmp_path: Path, is_killed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[str] = []

    async def sync(self: Keeper, *, final: bool = False) -> None:
        if final:
            noted.append("last state")

    async def rebuild(streams: Sequence[str]) -> None:
        raise AssertionError(streams)

    monkeypatch.setattr(Keeper, "sync", sync)
    with open_data_dir(tmp_path / "data") as data_dir:
        guard = StoreGuard(data_dir.ledger_file, nats.url, 3600.0, print)
        await guard.begin(rebuild)
        assert guard._watch is not None
        if is_killed:
            await nats.stop(kill=True)
            async with asyncio.timeout(WAIT_S):
                while guard._watch.nats.nc.is_connected:
                    await asyncio.sleep(0.01)
        await guard.end()
    assert noted == ([] if is_killed else ["last state"])
