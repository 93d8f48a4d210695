"""Runs images as a cluster would: as their own user, on a file system that cannot be written but for /data and /tmp.

By docker or podman where one of them runs containers; else by root with buildah, which has built them, in a mount and process
namespace of their own. All are in this machine's network, so that services find each other by ports.
"""

import json
import os
import shutil
import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import psutil

_STOP_TIMEOUT_S = 40.0
_ENCLOSED = """
root=$1 user=$2 data=$3 theirs=$PATH PATH=$4
shift 4
mount --bind "$root" "$root"
while [ "$1" != -- ]; do mount --bind "$1" "$root$2"; shift 2; done; shift
mount -o remount,bind,ro "$root"
mount -t tmpfs tmpfs "$root/tmp"
[ "$data" = mounted ] || mount -t tmpfs -o uid=65532,gid=65532,mode=0700 tmpfs "$root/data"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
setpriv=$(command -v setpriv) chroot=$(command -v chroot)
PATH=$theirs
exec "$setpriv" --no-new-privs "$chroot" --userspec="$user" --groups= "$root" "$@"
"""


@dataclass(frozen=True)
class Order:
    """What is to be run. `program` in place of the image's entry point; `mounts` from this machine's folders or files to places in
    the container, read-only but for /data."""

    image: str
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[Path, str] = field(default_factory=dict)
    program: Sequence[str] = ()


@dataclass(frozen=True)
class Inspected:
    """Of an image's configuration."""

    user: str
    labels: Mapping[str, str]
    environment: Mapping[str, str]
    entry_point: Sequence[str]
    default_arguments: Sequence[str]
    layers: Sequence[str]
    size_bytes: int


class Containers(ABC):
    """Something that runs them."""

    @abstractmethod
    def inspect(self, image: str) -> Inspected:
        """Raises CalledProcessError where there is no such image."""

    @abstractmethod
    def command(self, order: Order) -> Sequence[str]:
        """The command that runs a container to its end, with its output and exit code."""

    def process(self, started: "subprocess.Popen[bytes]") -> psutil.Process:
        """Whom to send signals for the container."""
        return psutil.Process(started.pid)

    def environment(self, order: Order) -> Mapping[str, str]:
        """Of that command."""
        return os.environ

    def run(self, order: Order, *, timeout_s: float = 120.0) -> "subprocess.CompletedProcess[str]":
        """Runs it to its end, whatever that is."""
        command, environment = self.command(order), self.environment(order)
        return subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def start(self, order: Order, log: Path) -> "Container":
        with log.open("wb") as output:
            process = subprocess.Popen(
                self.command(order),
                env=self.environment(order),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return Container(self, order, process, log)

    @abstractmethod
    def close(self) -> None:
        """Removes what it has made."""


@dataclass
class Container:
    """One that was started."""

    containers: Containers
    order: Order
    started: "subprocess.Popen[bytes]"
    log: Path

    def output(self) -> str:
        return self.log.read_text("utf-8", errors="replace")

    def has_ended(self) -> bool:
        return self.started.poll() is not None

    def stop(self) -> int:
        """SIGTERM, as a cluster does; its exit code."""
        if not self.has_ended():
            self.containers.process(self.started).send_signal(signal.SIGTERM)
        try:
            return self.started.wait(_STOP_TIMEOUT_S)
        finally:
            self.started.kill()


class Engine(Containers):
    """docker, or podman, which takes the same arguments."""

    def __init__(self, program: str) -> None:
        self._program = program

    @cache  # noqa: B019 - there is one a session
    def inspect(self, image: str) -> Inspected:
        found = json.loads(_output([self._program, "image", "inspect", image]))[0]
        size_bytes, layers = found["Size"], found["RootFS"]["Layers"]
        return _inspected(found["Config"], layers, size_bytes)

    def command(self, order: Order) -> Sequence[str]:
        words = [self._program, "run", "--rm", "--network=host", "--read-only", "--cap-drop=ALL", "--tmpfs=/tmp"]
        words += ["--security-opt=no-new-privileges"]
        if "/data" not in order.mounts.values():
            words += ["--volume=/data"]  # has the owner that the image says, where a tmpfs may belong to root
        words += [
            f"--volume={source}:{target}{'' if target == '/data' else ':ro'}" for source, target in order.mounts.items()
        ]
        words += [f"--env={name}={value}" for name, value in order.environment.items()]
        words += [f"--entrypoint={order.program[0]}"] if order.program else []
        return [*words, order.image, *order.program[1:], *order.arguments]

    def close(self) -> None:
        """Nothing: each container is removed when it ends."""


class Enclosures(Containers):
    """Without a container engine: the file system of an image, mounted by buildah, read-only in namespaces of its own."""

    def __init__(self) -> None:
        self._roots: dict[str, tuple[str, Path]] = {}

    @cache  # noqa: B019 - there is one a session
    def inspect(self, image: str) -> Inspected:
        found = json.loads(_output(["buildah", "inspect", "--type=image", image]))["OCIv1"]
        files = (path.lstat() for path in self._root(image).rglob("*") if path.is_symlink() or path.is_file())
        return _inspected(found["config"], found["rootfs"]["diff_ids"], sum(file.st_size for file in files))

    def command(self, order: Order) -> Sequence[str]:
        root = self._root(order.image)
        mounts = []
        for source, target in order.mounts.items():
            place = root / target.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.mkdir(exist_ok=True) if source.is_dir() else place.touch()
            mounts += [str(source), target]
        inspected = self.inspect(order.image)
        entry = order.program or [
            *inspected.entry_point,
            *(() if order.arguments else inspected.default_arguments),
        ]
        data = "mounted" if "/data" in order.mounts.values() else "temporary"
        script = [
            _path("sh"),
            "-euc",
            _ENCLOSED,
            "sh",
            str(root),
            inspected.user,
            data,
            os.environ["PATH"],
            *mounts,
            "--",
        ]
        namespaces = ["--mount", "--pid", "--ipc", "--fork", "--kill-child", "--propagation=private"]
        return [_path("unshare"), *namespaces, *script, *entry, *order.arguments]

    def environment(self, order: Order) -> Mapping[str, str]:
        return {**self.inspect(order.image).environment, "HOME": "/tmp", **order.environment}

    def process(self, started: "subprocess.Popen[bytes]") -> psutil.Process:
        (inside,) = psutil.Process(started.pid).children()
        return inside

    def close(self) -> None:
        for container, _ in self._roots.values():
            _output(["buildah", "rm", container])

    def _root(self, image: str) -> Path:
        if image not in self._roots:
            container = _output(["buildah", "from", "--pull-never", image]).strip()
            root = Path(_output(["buildah", "mount", container]).strip())
            for folder in ("proc", "sys", "dev", "tmp", "app"):
                (root / folder).mkdir(exist_ok=True)
            self._roots[image] = container, root
        return self._roots[image][1]


@contextmanager
def available() -> Iterator[Containers | None]:
    """What runs containers here; None where nothing does."""
    containers = _found()
    try:
        yield containers
    finally:
        if containers:
            containers.close()


def _found() -> Containers | None:
    for program in ("docker", "podman"):
        if (
            shutil.which(program)
            and subprocess.run([program, "info"], capture_output=True, check=False).returncode == 0
        ):
            return Engine(program)
    needed = ("buildah", "unshare", "setpriv", "chroot")
    return Enclosures() if os.geteuid() == 0 and all(map(shutil.which, needed)) else None


def _inspected(config: Mapping[str, Any], layers: Sequence[str], size_bytes: int) -> Inspected:
    return Inspected(
        user=config.get("User", ""),
        labels=config.get("Labels") or {},
        environment=dict(line.split("=", 1) for line in config.get("Env") or ()),
        entry_point=config.get("Entrypoint") or (),
        default_arguments=config.get("Cmd") or (),
        layers=layers,
        size_bytes=size_bytes,
    )


def _path(program: str) -> str:
    found = shutil.which(program)
    assert found, f"{program} is not installed"
    return found


def _output(command: Sequence[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
