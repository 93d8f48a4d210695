"""What the supervisor knows about its children."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class ProbeKind(StrEnum):
    """How a child shows that it is ready."""

    NATS = "nats"  # it greets with INFO, which nats-server does once its store is recovered
    GRPC = "grpc"  # grpc.health.v1 answers SERVING
    HTTP = "http"  # GET answers 200


@dataclass(frozen=True)
class Probe:
    """Where and how to ask a child whether it is ready."""

    kind: ProbeKind
    host: str
    port: int
    path: str = "/"
    """For HTTP: the path to GET."""


@dataclass(frozen=True)
class StartLimits:
    """What a child may take until it is ready. Beyond it the start ends: it would not get better by waiting."""

    timeout_s: float
    memory_bytes: int
    """Resident memory of the process."""
    advice: str
    """What the user can do then."""


@dataclass(frozen=True)
class ChildSpec:
    """One process to keep alive."""

    name: str
    """Of the process, and of its log file."""
    command: Sequence[str]
    environment: Mapping[str, str] = field(repr=False)
    """The child's whole environment; holds secrets, so it is never printed."""
    probe: Probe
    module: str = ""
    """Of a service of ours, which can be forked instead of being started by `command`."""
    arguments: Sequence[str] = ()
    """Of the module."""
    service: str = ""
    """What it is a process of, if not of what its name says: `orchestrator-2` is one of the orchestrators."""
    inherited_fds: tuple[int, ...] = ()
    """Open files that this child alone is handed."""
    damage_pattern: str = ""
    """A line of its output that matches this regular expression says that its data is damaged: everything stops. For a
    program that only warns, and then serves as if the data had never been there."""
    damage_advice: str = ""
    """What the user can do then."""
    write_failure_pattern: str = ""
    """A line of its output that matches says that it could not write and will not write again: it is restarted once there is
    room. For a program that stays in that state although the disk has room again."""
    ports: tuple[int, ...] = ()
    """On loopback, that it listens on itself. One that another program has taken is why it cannot start."""
    start_limits: StartLimits | None = None
    start_stage: int = 1
    """Stages start one after another, each once the one before is ready; inside a stage all start at once."""
    stop_stage: int = 1
    """Stages stop one after another, lowest first; inside a stage all stop at once."""
    stop_grace_s: float = 12.0
    """From SIGTERM to SIGKILL."""


@dataclass(frozen=True)
class RestartPolicy:
    """How a child that died is started again."""

    backoff_initial_s: float = 0.2
    """A single crash costs the user little."""
    backoff_max_s: float = 10.0
    """A child that cannot start does not eat the machine."""
    healthy_after_s: float = 60.0
    """Up this long, a child counts as healthy again and its backoff starts anew."""
    start_crashes_max: int = 3
    """This many deaths before the first readiness stop everything: the cause will not go away by itself."""


class ChildState(StrEnum):
    """Where a child is in its life."""

    STARTING = "starting"
    READY = "ready"
    ENDED = "ended"  # in good order though the supervisor did not ask: it is started again at once
    DIED = "died"
    STOPPING = "stopping"
    STOPPED = "stopped"
    KILLED = "killed"


@dataclass(frozen=True)
class ChildEvent:
    """A change in a child's life, for the console and the state file."""

    name: str
    state: ChildState
    pid: int | None
    seconds: float
    """Since this process was started (READY, ENDED, DIED) or asked to stop (STOPPED, KILLED)."""
    exit_code: int | None = None
    """DIED: the exit code; negative is the signal that ended it."""
    retry_in_s: float | None = None
    """DIED: when it is started again."""
    last_lines: Sequence[str] = ()
    """DIED: what it said last, oldest first."""
    restarts: int = 0
    """How often it was started again so far."""
