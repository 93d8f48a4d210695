"""What is wrong with the stored data, and what would be done about it. Looks, and changes nothing."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from kit.jetstream import Nats
from kit.jetstream.condition import Finding, StoreCondition
from ops.errors import NoRoomToExamine, OperatorError
from ops.local_store import LocalStore, OpenStore
from ops.watch import findings
from ops.watch.compare import mendable
from ops.watch.keeper import Keeper
from ops.watch.ledger import Ledger
from ops.work import WorkReport

NO_WORK_REPORT = WorkReport((), is_wrong=False)
Observe = Callable[[Nats], Awaitable[WorkReport]]
"""Looks at more than at damage, in the same store."""
_MEBIBYTE = 1024 * 1024
_NO_LEDGER = (
    "A cluster has no ledger: its message store was not compared with what was written. Ingestion compares names, records, files "
    "and both indexes with each other a minute after its start and every hour; what it found is said here."
)


@dataclass(frozen=True)
class Diagnosis:
    """What was found."""

    now: tuple[Finding, ...] = ()
    """What differs from what should be there at this moment."""
    before: tuple[Finding, ...] = ()
    """Findings that no person has accepted yet."""
    remarks: tuple[str, ...] = ()
    unreadable: str = ""
    """Why the message store cannot be read at all."""
    was_compared: bool = True
    """Whether the store could be compared with a ledger."""
    observed: WorkReport = NO_WORK_REPORT

    @property
    def is_well(self) -> bool:
        return not (self.now or self.before or self.unreadable or self.observed.is_wrong)

    @property
    def losses(self) -> tuple[Finding, ...]:
        """What a copy made now would lack: what is wrong at this moment, and what was lost before and could not be put right."""
        return (*self.now, *(finding for finding in self.before if finding.repaired < finding.count))

    def lines(self) -> list[str]:
        """For the terminal."""
        shown = [*self.remarks, *self.observed.lines]
        if self.unreadable:
            shown += ["The message store cannot be read:", self.unreadable]
        if self.before:
            shown += [
                "Found before, and not accepted yet (groundwork doctor --accept):",
                *findings.lines(self.before),
            ]
        if self.now:
            shown += ["Wrong now:", *findings.lines(self.now)]
        if not self.is_well:
            return shown
        if not self.was_compared:
            return [*shown, "Nothing was found before. What the store holds now was not compared with anything."]
        return [*shown, "Nothing is wrong with the stored data."]


async def report_no_work(nats: Nats) -> WorkReport:  # noqa: ARG001 - as all that observe
    """Stands in where damage alone is of interest."""
    return NO_WORK_REPORT


async def examine(
    nats: Nats,
    ledger_file: Path | None,
    now: Callable[[], datetime],
    *,
    accept: bool,
    observe: Observe = report_no_work,
) -> Diagnosis:
    """Of a store that runs; without a ledger only what was found before. With `accept` that is forgotten."""
    condition = await StoreCondition.open(nats)
    accepted = await condition.accept() if accept else 0
    before = tuple(await condition.findings())
    remarks = (f"Accepted: {accepted} findings.",) if accept else ()
    compared = (
        await _compare(nats, ledger_file, now) if ledger_file else Diagnosis(remarks=(_NO_LEDGER,), was_compared=False)
    )
    wrong = {finding.detail for finding in compared.now}
    over = tuple(finding for finding in before if finding.detail not in wrong)
    remarks = (*remarks, *compared.remarks)
    return Diagnosis(compared.now, over, remarks, was_compared=compared.was_compared, observed=await observe(nats))


async def examine_copy(
    local: LocalStore, open_store: OpenStore, now: Callable[[], datetime], observe: Observe = report_no_work
) -> Diagnosis:
    """Of a store that does not run. A copy is looked at: the server cuts off what it cannot read when it starts.

    Raises NoRoomToExamine when there is no room for the copy.
    """
    copy = local.path / "nats.examined"
    await asyncio.to_thread(_copy, local.nats_store, copy)
    try:
        async with open_store(copy) as nats:
            before = tuple(await (await StoreCondition.open(nats)).findings())
            compared = await _compare(nats, local.ledger_file, now)
            return replace(compared, before=before, observed=await observe(nats))
    except OperatorError as error:
        return Diagnosis(unreadable=str(error))
    finally:
        await asyncio.to_thread(shutil.rmtree, copy, ignore_errors=True)


async def _compare(nats: Nats, ledger_file: Path, now: Callable[[], datetime]) -> Diagnosis:
    ledger = await asyncio.to_thread(Ledger.look, ledger_file)
    if ledger is None:
        return Diagnosis(
            remarks=(f"There is no ledger {ledger_file} that can be read: what was lost before is not known.",),
            was_compared=False,
        )
    try:
        comparison = await Keeper(nats, ledger).compare()
    finally:
        await asyncio.to_thread(ledger.close)
    can_be_mended = {deviation.subject for _, deviation in mendable(comparison, quiet=True)}
    can_be_mended |= {subject for each in comparison.queues for subject in each.lost}
    losses = findings.losses(comparison, can_be_mended, now(), findings.MENDABLE)
    return Diagnosis((*losses, *findings.fileless(comparison.after(can_be_mended), now())))


def _copy(store: Path, copy: Path) -> None:
    shutil.rmtree(copy, ignore_errors=True)
    size_bytes = sum(path.stat().st_size for path in store.rglob("*") if path.is_file())
    free_bytes = shutil.disk_usage(copy.parent).free
    if size_bytes > free_bytes:
        raise NoRoomToExamine(
            f"To look at the message store a copy of it is made, {size_bytes // _MEBIBYTE} MB; {copy.parent} has room for "
            f"{free_bytes // _MEBIBYTE} MB. Free some space, or start Groundwork, which says what it finds, too"
        )
    shutil.copytree(store, copy)
