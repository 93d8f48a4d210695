"""Becomes a child of the supervisor that cannot outlive it: ``python -I -S launcher.py PARENT_PID GUARD -- COMMAND…``.

The supervisor may be killed with SIGKILL, and then nothing of its own code runs any more. So each child arranges its own
end before it becomes the service: on Linux the kernel sends SIGKILL when the parent dies (``PR_SET_PDEATHSIG``, prctl(2);
it survives execve); elsewhere a small guardian process watches the parent and kills the child's process group.
Doing this here, in a fresh single-threaded interpreter, avoids ``preexec_fn``, which is unsafe in a process with threads.
Only the standard library, and little of it: this runs before every service starts.
"""

import os
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
GUARD_INTERVAL_S = 0.5
DESCRIPTORS_MAX = 4096
"""Above what a supervisor has open when it starts a child."""


def main(argv: list[str]) -> None:
    """Ties this process to its parent and becomes the command."""
    parent_pid, guard, command = int(argv[1]), argv[2], argv[4:]
    if guard == "prctl":
        _die_with_parent_by_kernel()
    else:
        _die_with_parent_by_guardian(parent_pid)
    if os.getppid() != parent_pid:  # it died before we were tied to it
        sys.exit(1)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the supervisor's own command, no shell
    except OSError as error:
        sys.stderr.write(f"cannot start {command[0]}: {error.strerror}\n")
        sys.exit(127)


def _die_with_parent_by_kernel() -> None:
    import ctypes  # noqa: PLC0415 - only on Linux

    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _die_with_parent_by_guardian(parent_pid: int) -> None:
    service_pid = os.getpid()
    if os.fork() != 0:
        return
    os.setsid()  # its own group, so that killing the service's group does not end it half way
    # An open stderr would look to the supervisor like a living child, an inherited listening socket to the next start like a taken
    # port.
    os.closerange(0, DESCRIPTORS_MAX)
    while os.getppid() == service_pid:
        try:
            os.kill(parent_pid, 0)
        except OSError:
            os.killpg(service_pid, signal.SIGKILL)
            break
        time.sleep(GUARD_INTERVAL_S)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv)
