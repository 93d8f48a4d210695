"""A double of clamd, and the file that every scanner finds."""

import asyncio
import struct

EICAR = r"X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR-STANDARD-" + "ANTIVIRUS-TEST-FILE!$H+H*"
"""The harmless file that every scanner takes for a virus (eicar.org), in two parts: this one is no such file."""


class Clamd:
    """A double of clamd: answers INSTREAM by what it was sent."""

    def __init__(self, size_max: int = 1 << 20) -> None:
        self.scanned: list[bytes] = []
        self.is_silent = False
        self._size_max = size_max

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            assert await reader.readexactly(10) == b"zINSTREAM\0"
            data = b""
            while size := struct.unpack(">I", await reader.readexactly(4))[0]:
                data += await reader.readexactly(size)
                if len(data) > self._size_max:
                    writer.write(b"INSTREAM size limit exceeded. ERROR\0")
                    return
            self.scanned.append(data)
            if not self.is_silent:
                writer.write(b"stream: Eicar-Test-Signature FOUND\0" if EICAR.encode() in data else b"stream: OK\0")
        finally:
            writer.close()
