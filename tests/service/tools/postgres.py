"""A real PostgreSQL server of the test's own, from Debian's package, on loopback."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kit.testing.harness import free_port

_PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
USER = "postgres"
PASSWORD = "reader-pass"


def missing() -> str:
    """Why there is none here; empty where there is."""
    if not _PLACES:
        return "install Debian's postgresql"
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        return "the server does not run as root, and there is no runuser"
    return ""


class Server:
    """A running server."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port

    def sql(self, statements: str, database: str = "postgres") -> str:
        """Runs statements as the owner of all."""
        return _as_user(
            [str(_PLACES[-1].with_name("psql")), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1",
             "-p", str(self.port), "-U", USER, "-d", database],
            statements,
        )  # fmt: skip

    def url(self, user: str = "reader", database: str = "shop") -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"


@contextmanager
def running_server(folder: Path) -> Iterator[Server]:
    """`folder` is one that the user postgres may enter."""
    data, port = folder / "data", free_port()
    if os.geteuid() == 0:
        shutil.chown(folder, USER)
    initdb, control = str(_PLACES[-1]), str(_PLACES[-1].with_name("pg_ctl"))
    _as_user([initdb, "-D", str(data), "-U", USER, "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"])
    (data / "pg_hba.conf").write_text("host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
    options = (
        f"-c listen_addresses=127.0.0.1 -p {port} -c unix_socket_directories='' -c fsync=off -c shared_buffers=16MB"
    )
    _as_user([control, "-D", str(data), "-w", "-l", str(folder / "log"), "-o", options, "start"])
    try:
        yield Server(folder, port)
    finally:
        _as_user([control, "-D", str(data), "-m", "immediate", "-w", "stop"])


def _as_user(command: list[str], text: str = "") -> str:
    if os.geteuid() == 0:
        command = ["runuser", "-u", USER, "--", *command]
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout
