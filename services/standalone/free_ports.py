"""Ports on loopback: choosing free ones for the services, and finding out that the public one is taken."""

from __future__ import annotations

import errno
import json
import random
import socket
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from kit.network.hosts import is_loopback_address
from kit.private_files import write_private
from services.standalone.errors import PortTaken, StartRefused

LOOPBACK = "127.0.0.1"
FIRST_PORT, LAST_PORT = 18_000, 31_999
"""Below the ranges from which Linux (32768…) and macOS (49152…) take ports for outgoing connections: a port from there
could be taken by a stranger's connection while a child is being restarted."""
BACKLOG = 2048
"""Connections that may wait for a gateway, as many as uvicorn asks for; the kernel allows what net.core.somaxconn says."""
LISTENING = "0A"
"""TCP_LISTEN in /proc/net/tcp, proc_pid_net(5)."""


def choose_ports(
    names: Sequence[str], remembered: Mapping[str, int], rng: random.Random, *, reserved: int
) -> dict[str, int]:
    """A port that nobody listens on for each name: the remembered one where it is free, so that a port stays the same
    from start to start."""
    kept = {
        name: remembered[name]
        for name in names
        if remembered.get(name, reserved) != reserved and not is_taken(remembered[name])
    }
    missing = [name for name in names if name not in kept]
    fresh = choose_free_ports(len(missing), rng, reserved={reserved, *kept.values()})
    return kept | dict(zip(missing, fresh, strict=True))


def read_ports(path: Path) -> dict[str, int]:
    """What `write_ports` wrote; nothing where it cannot be read: then others are chosen."""
    try:
        ports = json.loads(path.read_text("utf-8"))
        return {str(name): int(port) for name, port in ports.items() if FIRST_PORT <= int(port) <= LAST_PORT}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def write_ports(path: Path, ports: Mapping[str, int]) -> None:
    """Remembers ports for the next start."""
    write_private(path, json.dumps(dict(ports), indent=2) + "\n")


def choose_free_ports(count: int, rng: random.Random, *, reserved: Collection[int]) -> list[int]:
    """``count`` different ports that nobody listens on, without ``reserved``, which are free too but spoken for. Starts at a
    random place, so that instances seldom meet."""
    span = LAST_PORT - FIRST_PORT + 1
    start = rng.randrange(span)
    chosen: list[int] = []
    if not count:
        return chosen
    for step in range(span):
        port = FIRST_PORT + (start + step) % span
        if port not in reserved and not is_taken(port):
            chosen.append(port)
        if len(chosen) == count:
            return chosen
    raise StartRefused(f"Fewer than {count} ports from {FIRST_PORT} to {LAST_PORT} are free on {LOOPBACK}.")


def listen(host: str, port: int) -> socket.socket:
    """The public port, for the life of the supervisor: gateways inherit it, so that connections which come while one of them is
    restarted wait in its queue. Raises PortTaken or StartRefused, saying who has the port where that is cheap to know."""
    listener: socket.socket | None = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        if listener:
            listener.close()
        raise _refusal(host, port, error) from error
    listener.setblocking(False)
    return listener


def require_loopback(listener: socket.socket) -> None:
    """For a system that asks nobody for a key. Raises StartRefused unless only this machine reaches the socket: the gateway would
    refuse it too, but seconds later, and again and again."""
    address = listener.getsockname()[0]
    if not is_loopback_address(address):
        raise StartRefused(
            f"The console and the HTTP API would listen on {address}, where others than this machine reach them, and ask nobody "
            "who they are. Set GROUNDWORK_AUTH=api_keys, and the start prints a first key; or leave GROUNDWORK_HOST out"
        )


def _refusal(host: str, port: int, error: OSError) -> StartRefused:
    if error.errno == errno.EACCES:
        return StartRefused(
            f"Port {port} needs rights this user does not have. Use one from 1024 up: GROUNDWORK_PORT=8080"
        )
    if error.errno != errno.EADDRINUSE:
        return StartRefused(
            f"Nothing can listen on {host}:{port} ({error.strerror or error}). Set GROUNDWORK_HOST to an address of this "
            "machine, or leave it out"
        )
    owner = _listener(port)
    other = port + 1 if port < 65535 else 8080
    return PortTaken(
        f"Port {port} is taken{f' by {owner}' if owner else ''}. "
        f"Stop that program, or use another port: GROUNDWORK_PORT={other}"
    )


def is_taken(port: int) -> bool:
    """Whether a program listens on a port of loopback, or nobody may."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(
            socket.SOL_SOCKET, socket.SO_REUSEADDR, 1
        )  # the last run's connections in TIME_WAIT are no obstacle
        try:
            listener.bind((LOOPBACK, port))
        except OSError:
            return True
    return False


def _listener(port: int) -> str | None:
    """Name and process id of who listens on the port, the oldest of several, which gave it to the others; None where /proc does not
    say."""
    try:
        inode = _listening_inode(port)
        if inode is None:
            return None
        for link in sorted(Path("/proc").glob("[0-9]*/fd/*"), key=lambda link: int(link.parts[2])):
            try:
                if str(link.readlink()) == f"socket:[{inode}]":
                    process = link.parents[1]
                    return f"{(process / 'comm').read_text().strip()} (process {process.name})"
            except OSError:
                continue  # another user's process, or one that has just ended
    except OSError:
        return None
    return None


def _listening_inode(port: int) -> str | None:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for row in Path(table).read_text().splitlines()[1:]:
            columns = row.split()
            if columns[3] == LISTENING and int(columns[1].rsplit(":", 1)[1], 16) == port:
                return columns[9]
    return None
