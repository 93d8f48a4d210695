"""Whether a file may be stored: a scanner for viruses decides, where one is set up."""

from dataclasses import dataclass
from typing import Protocol

import structlog

from services.ingest.errors import FileInfected, ScannerAway
from services.ingest.metrics import Metrics
from services.ingest.ports import ReadableFile

_log = structlog.get_logger()


@dataclass(frozen=True)
class ScanResult:
    """What a scanner found: the name of a virus, or nothing."""

    found: str = ""


class Scanner(Protocol):
    """Looks into files before they are stored."""

    async def scan(self, file: ReadableFile) -> ScanResult:
        """Raises ScannerAway when the file was not scanned."""


class Gatekeeper:
    """Has every file scanned before it is stored. `takes_unscanned`: what happens while the scanner is away."""

    def __init__(self, scanner: Scanner | None, metrics: Metrics, *, takes_unscanned: bool) -> None:
        self._scanner = scanner
        self._metrics = metrics
        self._takes_unscanned = takes_unscanned

    async def admit(self, file: ReadableFile, name: str) -> bool:
        """Whether the file was scanned, or need not be. Raises FileInfected, and ScannerAway unless unscanned files are taken."""
        if self._scanner is None:
            return True
        try:
            result = await self._scanner.scan(file)
        except ScannerAway as error:
            self._metrics.scans.labels(outcome="away").inc()
            _log.warning("file_not_scanned", error=error.message)
            if not self._takes_unscanned:
                raise
            return False
        self._metrics.scans.labels(outcome="infected" if result.found else "clean").inc()
        if result.found:
            _log.warning("file_infected", found=result.found)
            raise FileInfected(
                f"{name} was not stored: the scanner found {result.found[:100]}", found=result.found[:100]
            )
        return True
