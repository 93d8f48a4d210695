"""What hostile code in a parsing child can not do. It runs in a real child, behind the real pool."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from services.ingest.reading.child import seccomp
from services.ingest.reading.child.syscalls import ARCHITECTURES
from tests.unit.ingest.code_parser import CodeParser, code_parser

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limits are those of Linux")

_ROOT = Path(__file__).resolve().parents[3]
_SECRET = "s3cret-of-the-worker"

_READING = {
    "the worker's environment": "open(f'/proc/{worker}/environ').read()",
    "the worker's memory": "open(f'/proc/{worker}/mem', 'rb').read(1)",
    "the environment of its server": "open(f'/proc/{os.getppid()}/environ').read(); open(f'/proc/{os.getppid()}/maps').read()",
    "a secret in the data folder": "open(secret).read()",
    "the names in the data folder": "os.listdir(os.path.dirname(secret))",
    "the users of the machine": "open('/etc/passwd').read()",
    "a home": "os.listdir(home)",
    "a copy by a link": "os.link(secret, '/tmp/link')",
}
_CALLS = {
    "TCP": "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
    "TCP 6": "socket.socket(socket.AF_INET6, socket.SOCK_STREAM)",
    "UDP": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "a Unix socket": "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)",
    "a pair of sockets": "socket.socketpair()",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "a connection": "socket.create_connection(('127.0.0.1', port), 1)",
    "a program": "subprocess.run(['/bin/true'])",
    "a program in its own place": "os.execv('/bin/true', ['true'])",
    "a program by posix_spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "a program from memory": "os.execve(os.memfd_create('x'), ['x'], {})",
    "a copy of itself": "os.fork()",
    "a file in the data folder": "open(secret + '.new', 'w')",
    "a file in /tmp": "open('/tmp/new', 'w')",
    "a file of no name": "os.open('/tmp', os.O_TMPFILE | os.O_RDWR)",
    "the secret, overwritten": "open(secret, 'r+')",
    "the secret, cut off": "os.truncate(secret, 0)",
    "the secret, removed": "os.remove(secret)",
    "the secret, renamed": "os.rename(secret, secret + '.old')",
    "the secret, opened to all": "os.chmod(secret, 0o777)",
    "the secret, given away": "os.chown(secret, 1, 1)",
    "a folder": "os.mkdir('/tmp/folder')",
    "a link": "os.symlink('/etc/passwd', '/tmp/link')",
    "a signal to the worker": "os.kill(worker, 0)",
    "a signal to its server": "os.kill(os.getppid(), 9)",
    "a signal to another process": "os.kill(victim, 9)",
    "a signal to all": "os.kill(-1, 0)",
    "a signal to its group": "os.kill(0, 0)",
    "a signal by descriptor": "os.pidfd_open(victim)",
    "a signal when input comes": "fcntl.fcntl(1, fcntl.F_SETOWN, victim)",
    "tracing": "call(101 if x86 else 117, 16, victim, 0, 0)",
    "reading another's memory": "call(310 if x86 else 270, victim, 0, 0, 0, 0, 0)",
    "a namespace": "call(272 if x86 else 97, 0x10000000)",
    "io_uring": "call(425, 1, 0)",
    "bpf": "call(321 if x86 else 280, 0, 0, 0)",
    "the kernel's keys": "call(250 if x86 else 219, 0, 0, 0)",
    "a mount": "call(165 if x86 else 40, 0, 0, 0, 0, 0)",
    "a user": "os.setresuid(0, 0, 0)",
    "another's limits": "resource.prlimit(victim, resource.RLIMIT_NOFILE)",
    "another's processors": "os.sched_setaffinity(victim, {0})",
    "another's priority": "os.setpriority(os.PRIO_PROCESS, victim, 19)",
    "more memory": "resource.setrlimit(resource.RLIMIT_AS, (2**40, 2**40))",
    "a new call": "call(10_000)",
    "the older kind of calls": "call(0x40000000 + 41 if x86 else 198, 2, 1, 0)",
}
_PRELUDE = """
import ctypes, errno, fcntl, os, platform, resource, signal, socket, subprocess
x86 = platform.machine() == "x86_64"
libc = ctypes.CDLL(None, use_errno=True)

def call(*numbers):
    if libc.syscall(*map(ctypes.c_long, numbers)) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

result = {}
for name, attempt in attempts.items():
    try:
        exec(attempt)
    except OSError as error:
        result[name] = "" if error.errno in (errno.EPERM, errno.EACCES, errno.ENOSYS) else repr(error)
    except ValueError as error:  # what Python makes of EPERM where limits are set
        result[name] = "" if "not allowed" in str(error) else repr(error)
    else:
        result[name] = "done"
"""


@pytest.fixture
async def parser(tmp_path: Path) -> AsyncIterator[CodeParser]:
    async with code_parser(tmp_path) as made:
        yield made


@pytest.fixture
def victim() -> Iterator[int]:
    """A process of the same user."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    assert process.poll() is None, "it lives"
    process.communicate(b"\n")


def _skip_unless(parser: CodeParser, what: str) -> None:
    if parser.server.sandbox[what] == "not limited":
        pytest.skip(
            f"{what} are not limited on this machine: {parser.server.sandbox['refused'] or 'the kernel cannot'}"
        )


async def _attempted(parser: CodeParser, attempts: dict[str, str], victim: int, folder: Path) -> list[str]:
    """Those that were not refused, whether they succeeded or not."""
    secret = folder / "data" / "secret"
    secret.parent.mkdir()
    secret.write_text(_SECRET)
    listening = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    names = {
        "attempts": attempts, "worker": os.getpid(), "victim": victim, "secret": str(secret),
        "home": str(Path.home()),
        "port": listening.sockets[0].getsockname()[1],
    }  # fmt: skip
    async with listening:
        told = await parser.run("".join(f"{name} = {value!r}\n" for name, value in names.items()) + _PRELUDE)
    assert secret.read_text() == _SECRET
    outcome = json.loads(told)
    assert outcome.keys() == attempts.keys()
    return [f"{name}: {result}" for name, result in outcome.items() if result]


async def test_child_reads_no_secret_and_no_file_but_its_own(parser: CodeParser, victim: int, tmp_path: Path) -> None:
    _skip_unless(parser, "files")
    assert await _attempted(parser, _READING, victim, tmp_path) == []


async def test_child_makes_no_socket_program_file_or_signal(parser: CodeParser, victim: int, tmp_path: Path) -> None:
    _skip_unless(parser, "calls")
    assert await _attempted(parser, _CALLS, victim, tmp_path) == []


@pytest.mark.parametrize("without", ["files", "calls"])
async def test_each_of_the_two_keeps_from_writing_by_itself(without: str, victim: int, tmp_path: Path) -> None:
    """Landlock for itself, and seccomp for itself: a machine may lack either."""
    async with code_parser(tmp_path, without=without) as parser:
        _skip_unless(parser, "calls" if without == "files" else "files")
        assert parser.server.sandbox[without] == "not limited"
        writing = {name: code for name, code in _CALLS.items() if "secret" in code or "/tmp" in code}
        if without == "calls":  # the mode of a file is not Landlock's
            writing = {name: code for name, code in writing.items() if "chmod" not in code and "chown" not in code}
        assert await _attempted(parser, writing, victim, tmp_path) == []


async def test_child_knows_nothing_of_the_workers_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDWORK_SIGNING_SECRET", _SECRET)
    async with code_parser(tmp_path) as parser:
        told = await parser.run("import os; result = dict(os.environ)")
    assert _SECRET not in told
    assert not [name for name in json.loads(told) if name.startswith(("GROUNDWORK", "PYTHON", "HOME", "PATH"))]


async def test_nothing_is_imported_from_the_working_directory_or_the_users_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = tmp_path / "beside"
    (beside / "services").mkdir(parents=True)
    for name in ("ctypes.py", "json.py", "numpy.py", "services/__init__.py", "sitecustomize.py"):
        (beside / name).write_text("raise SystemExit('this must not run')")
    monkeypatch.chdir(beside)
    monkeypatch.setenv("PYTHONPATH", str(beside))
    async with code_parser(tmp_path) as parser:
        told = await parser.run("import ctypes, sys; result = [ctypes.__file__, sys.path, __import__('os').getcwd()]")
    assert str(beside) not in told


async def test_child_knows_the_time_zones_of_calendars(parser: CodeParser) -> None:
    code = "import datetime, zoneinfo; result = str(datetime.datetime(2024, 7, 12, tzinfo=zoneinfo.ZoneInfo('Europe/Oslo')))"
    assert await parser.run(code) == '"2024-07-12 00:00:00+02:00"'


async def test_files_of_two_tenants_are_never_read_by_one_process(parser: CodeParser) -> None:
    remember = (
        "import builtins, os; result = [os.getpid(), getattr(builtins, 'seen', [])]; builtins.seen = result[1] + ["
    )
    first, _ = json.loads(await parser.run(remember + "'acme 1']", "acme"))
    other, seen = json.loads(await parser.run(remember + "'other']", "other"))
    assert other != first
    assert seen == []
    again, seen = json.loads(await parser.run(remember + "'acme 2']", "acme"))
    assert (again, seen) == (first, ["acme 1"]), "a tenant's own next file finds the child warm"


async def test_child_holds_no_descriptor_but_its_own(parser: CodeParser) -> None:
    """Of the server, of other children, or of other files."""
    count = (
        "import os\nresult = []\n"
        "for n in range(256):\n"
        "    try: os.fstat(n); result.append(os.readlink(f'/proc/self/fd/{n}'))\n"
        "    except OSError: pass\n"
    )
    await parser.run(count, "acme")
    held = json.loads(await parser.run(count, "other"))
    assert sorted(name.partition(":")[0] for name in held) == ["/dev/null"] * 3 + ["/memfd"] * 2 + ["socket"] * 2


async def test_child_is_limited_in_memory_files_cores_and_priority(parser: CodeParser) -> None:
    told = await parser.run(
        "import os, resource\n"
        "names = ('AS', 'CORE', 'NOFILE', 'FSIZE')\n"
        "result = [resource.getrlimit(getattr(resource, 'RLIMIT_' + name))[1] for name in names]\n"
        "result.append(os.getpriority(os.PRIO_PROCESS, 0))"
    )
    memory, core, files, written, niceness = json.loads(told)
    assert (memory, core, written) == (2 * 1024**3, 0, 0)
    assert files <= 256
    assert niceness >= 5


async def test_another_user_reads_when_the_worker_is_root(parser: CodeParser) -> None:
    if os.geteuid() != 0:
        pytest.skip("the worker is not root")
    told = await parser.run(
        "import os; result = [os.getuid(), os.geteuid(), os.getgid(), os.getegid(), os.getgroups()]"
    )
    if parser.server.sandbox["user"] != "65534":
        pytest.skip(f"user 65534 cannot read the interpreter here: {parser.server.sandbox['refused']}")
    assert json.loads(told) == [65534, 65534, 65534, 65534, []]


def _is_running(pid: str) -> bool:
    try:
        return "Z" not in Path("/proc", pid, "stat").read_text().rpartition(")")[2]
    except OSError:
        return False


async def test_child_dies_with_its_worker(tmp_path: Path) -> None:
    """The worker is a process of its own that tells its child's id and is killed."""
    program = (
        "import asyncio, os, sys\n"
        "from pathlib import Path\n"
        "from tests.unit.ingest.code_parser import code_parser\n"
        "async def main():\n"
        "    async with code_parser(Path(sys.argv[1])) as parser:\n"
        "        code = 'import os; say(str(os.getpid()))\\nwhile True: pass'\n"
        "        await parser.run(code, on_stage=lambda pid: (print(pid, flush=True), os.kill(os.getpid(), 9)))\n"
        "asyncio.run(main())\n"
    )
    worker = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(tmp_path), stdout=asyncio.subprocess.PIPE,
        cwd=_ROOT,
    )  # fmt: skip
    assert worker.stdout is not None
    *_, pid = (await worker.stdout.read()).decode().split()
    await worker.wait()
    while _is_running(pid):
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=lambda found: found.name)
def test_filter_is_within_the_kernels_bounds_on_both_architectures(architecture) -> None:  # type: ignore[no-untyped-def]
    steps = list(seccomp.program(architecture, 1234))
    assert len(steps) < 4096
    assert {len(step) for step in steps} == {8}


def test_processor_time_is_for_each_file_and_then_over() -> None:
    code = (
        f"import sys; sys.path.append({str(_ROOT)!r})\n"
        "import time\n"
        "from services.ingest.reading.child.sandbox import allow_processor_time\n"
        "for _ in range(3):\n"
        "    allow_processor_time(1)\n"
        "    start = time.process_time()\n"
        "    while time.process_time() - start < 0.6: pass\n"
        "print('alive', flush=True)\n"
        "allow_processor_time(0.2)\n"
        "while True: pass\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("alive\n", -24)  # SIGXCPU
