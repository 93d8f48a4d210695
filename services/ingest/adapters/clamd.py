"""A scanner that speaks clamd's protocol (clamd(8), INSTREAM): the file goes over a socket in pieces with their length before them,
and a line comes back."""

import asyncio
import struct
from contextlib import suppress

from services.ingest.errors import ScannerAway
from services.ingest.ports import ReadableFile
from services.ingest.scanning import ScanResult

_PIECE_BYTES = 256 * 1024
_ANSWER_BYTES_MAX = 4096
_UNIX = "unix:"


class ClamdScanner:
    """Asks a clamd at `host:port`, or at `unix:/path` of its socket. A scan may take `timeout_s`."""

    def __init__(self, address: str, timeout_s: float) -> None:
        self._address = address
        self._timeout_s = timeout_s

    async def scan(self, file: ReadableFile) -> ScanResult:
        """Raises ScannerAway when it does not answer, or says that it could not scan the file."""
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._ask(file)
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            raise ScannerAway(
                f"the scanner for viruses at {self._address} does not answer ({type(error).__name__}); try again, or ask the "
                "operator"
            ) from error
        return self._result(answer)

    async def _ask(self, file: ReadableFile) -> str:
        reader, writer = await self._connect()
        try:
            writer.write(b"zINSTREAM\0")
            try:
                async for piece in file.pieces(_PIECE_BYTES):
                    writer.write(struct.pack(">I", len(piece)) + piece)
                    await writer.drain()
                writer.write(struct.pack(">I", 0))
                await writer.drain()
            except ConnectionError:
                # It hangs up on a file over its StreamMaxLength, and says so first.
                pass
            return (await reader.readuntil(b"\0"))[:_ANSWER_BYTES_MAX].rstrip(b"\0").decode("utf-8", "replace")
        except asyncio.LimitOverrunError as error:
            raise OSError("its answer has no end") from error
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._address.startswith(_UNIX):
            return await asyncio.open_unix_connection(self._address.removeprefix(_UNIX))
        host, _, port = self._address.rpartition(":")
        return await asyncio.open_connection(host.strip("[]"), int(port))

    def _result(self, answer: str) -> ScanResult:
        said = answer.removeprefix("stream: ").strip()
        if said == "OK":
            return ScanResult()
        if said.endswith(" FOUND"):
            return ScanResult(said.removesuffix(" FOUND"))
        raise ScannerAway(f"the scanner for viruses at {self._address} could not scan the file: {said[:200]}")
