"""Takes the network away from this process and from all that it starts, where the machine lets it: a network namespace with a
loopback interface and nothing else (Linux, namespaces(7)). The way out is a socket of the file system."""

import asyncio
import contextlib
import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_CHILD_SUBREAPER = 36
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
_INTERFACE = "16sH14x"
_PIECE_BYTES = 64 * 1024


def enclose() -> bool:
    """Whether this process has no network any more. Call it before there are threads. Raises OSError where it was begun and not
    ended."""
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(
        _PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0
    )  # what is left behind stays among the descendants, and is ended with them
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return False
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny")
    (own / "uid_map").write_text(f"{uid} {uid} 1")
    (own / "gid_map").write_text(f"{gid} {gid} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        asked = struct.pack(_INTERFACE, b"lo", 0)
        _, flags = struct.unpack(_INTERFACE, fcntl.ioctl(control, _SIOCGIFFLAGS, asked))
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack(_INTERFACE, b"lo", flags | _IFF_UP))
    return True


class WayOut:
    """A port of the loopback interface that leads to the proxy's socket, until it is cut."""

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path
        self._connections: set[asyncio.Task[None]] = set()
        self.is_cut = False
        self.port = 0

    async def open(self) -> asyncio.Server:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def cut(self) -> None:
        """Lets nothing out any more, and ends what is under way. `restore` undoes it."""
        self.is_cut = True
        ending = list(self._connections)
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    def restore(self) -> None:
        self.is_cut = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        outside: asyncio.StreamWriter | None = None
        try:
            if not self.is_cut:
                there, outside = await asyncio.open_unix_connection(self._socket_path)
                async with asyncio.TaskGroup() as group:
                    group.create_task(_copy(reader, outside))
                    group.create_task(_copy(there, writer))
        except (OSError, ExceptionGroup):
            pass  # one side went away
        finally:
            self._connections.discard(task)
            for each in (writer, outside):
                if each is not None:
                    each.transport.abort() if self.is_cut else each.close()


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while piece := await source.read(_PIECE_BYTES):
        sink.write(piece)
        await sink.drain()
    with contextlib.suppress(OSError, RuntimeError):
        sink.write_eof()
