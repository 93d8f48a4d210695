"""What is checked before anything starts: data directory, ports, backoff, log files, topology."""

from __future__ import annotations

import json
import os
import random
import socket
import stat
import subprocess
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from kit.access.key_folder import KeyFolder
from kit.testing.nats import nats_server_binary
from ops.signers import SIGNERS
from ops.state import USERS
from services.standalone import app, topology
from services.standalone.errors import DataDirUnusable, PortTaken, StartRefused
from services.standalone.free_ports import (
    choose_free_ports,
    choose_ports,
    listen,
    read_ports,
    require_loopback,
    write_ports,
)
from services.standalone.settings import StandaloneSettings, gateway_environment, inherited_environment
from services.standalone.storage.data_dir import open_data_dir
from services.standalone.storage.log_files import JsonLinesLog, readable, without_frames
from services.standalone.supervising.backoff import Backoff
from services.standalone.supervising.models import RestartPolicy

PASSWORDS = {"groundwork": "p", **{name: f"p-{name}" for name in USERS}}


def test_a_new_data_directory_is_private_and_marked(tmp_path: Path) -> None:
    path = tmp_path / "a" / "data"
    with open_data_dir(path) as data_dir:
        secret = data_dir.secret("nats_password")
        assert len(secret) == 64
        assert stat.S_IMODE((path / "secrets" / "nats_password").stat().st_mode) == 0o600
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        assert (path / "VERSION").read_text() == "1\n"
    with open_data_dir(path) as again:
        assert again.secret("nats_password") == secret


def test_a_data_directory_in_use_is_refused_with_the_holder(tmp_path: Path) -> None:
    in_use = rf"in use by another Groundwork \(process {os.getpid()}\)"
    with open_data_dir(tmp_path), pytest.raises(DataDirUnusable, match=in_use), open_data_dir(tmp_path):
        pass
    with open_data_dir(tmp_path):
        pass


def test_a_directory_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").touch()
    with pytest.raises(DataDirUnusable, match=r"not empty \(photo.jpg\) and has no VERSION"), open_data_dir(tmp_path):
        pass
    assert not (tmp_path / "VERSION").exists()


@pytest.mark.parametrize("version", ["2", "", "\x00\x00"])
def test_an_unknown_or_damaged_version_is_refused(tmp_path: Path, version: str) -> None:
    (tmp_path / "VERSION").write_text(version)
    with pytest.raises(DataDirUnusable, match="knows layout 1"), open_data_dir(tmp_path):
        pass


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(DataDirUnusable, match="a file is in its way"), open_data_dir(tmp_path / "data"):
        pass


@pytest.mark.skipif(os.geteuid() == 0, reason="skipped: root may write everywhere")
def test_a_directory_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(DataDirUnusable, match="Permission denied"), open_data_dir(tmp_path / "data"):
        pass


def test_a_taken_port_names_who_has_it_and_another_port() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(PortTaken, match=rf"Port {port} is taken.*GROUNDWORK_PORT={port + 1}") as caught:
            listen("127.0.0.1", port)
        if Path("/proc/net/tcp").exists():
            assert f"(process {os.getpid()})" in str(caught.value)
    with listen("127.0.0.1", port) as door, socket.create_connection(("127.0.0.1", port)):
        assert not door.get_inheritable()


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(StartRefused, match=r"Nothing can listen on 192.0.2.1:8080 .* Set GROUNDWORK_HOST"):
        listen("192.0.2.1", 8080)


@pytest.mark.parametrize(
    ("host", "is_refused"), [("0.0.0.0", True), ("::", True), ("127.0.0.1", False), ("::1", False)]
)
def test_an_address_that_others_reach_is_refused_where_nobody_is_asked_for_a_key(host: str, is_refused: bool) -> None:
    says = pytest.raises(StartRefused, match=r"Set GROUNDWORK_AUTH=api_keys.* leave GROUNDWORK_HOST out")
    with listen(host, 0) as door, says if is_refused else nullcontext():
        require_loopback(door)


def test_such_an_address_ends_the_start_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(app, "keep_terminal_for_people", lambda: None)
    port = choose_free_ports(1, random.Random(7), reserved={8080})[0]
    for name, value in {"HOST": "0.0.0.0", "PORT": str(port), "DATA_DIR": str(tmp_path / "data")}.items():
        monkeypatch.setenv(f"GROUNDWORK_{name}", value)
    assert app.main() == StartRefused.exit_code
    assert "GROUNDWORK_AUTH=api_keys" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("lacks", ["port", "models"])
def test_a_start_that_is_refused_for_the_machine_leaves_no_data_directory_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], lacks: str
) -> None:
    monkeypatch.setattr(app, "keep_terminal_for_people", lambda: None)
    free = choose_free_ports(1, random.Random(11), reserved={8080})[0]
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1] if lacks == "port" else free
        for name, value in {"PORT": str(port), "DATA_DIR": str(tmp_path / "data"), "MODELS_DIR": str(tmp_path)}.items():
            monkeypatch.setenv(f"GROUNDWORK_{name}", value)
        assert app.main() == StartRefused.exit_code
    told = capsys.readouterr().err
    assert (f"Port {port} is taken" in told, "The model folder" in told) == (lacks == "port", lacks == "models")
    assert not (tmp_path / "data").exists()


def test_a_data_directory_in_use_is_told_rather_than_that_its_port_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(app, "keep_terminal_for_people", lambda: None)
    monkeypatch.setattr(app, "_require_models", lambda *_, **__: None)
    with listen("127.0.0.1", 0) as taken, open_data_dir(tmp_path):
        for name, value in {"PORT": str(taken.getsockname()[1]), "DATA_DIR": str(tmp_path)}.items():
            monkeypatch.setenv(f"GROUNDWORK_{name}", value)
        assert app.main() == StartRefused.exit_code
    assert "in use by another Groundwork" in capsys.readouterr().err


def test_free_ports_are_different_and_below_the_range_of_outgoing_connections() -> None:
    ports = choose_free_ports(20, random.Random(1), reserved={8080})
    assert len(set(ports)) == 20
    assert all(18_000 <= port < 32_000 for port in ports)


def test_a_port_with_a_listener_is_not_chosen() -> None:
    first = choose_free_ports(1, random.Random(3), reserved={8080})[0]
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", first))
        listener.listen()
        assert first not in choose_free_ports(5, random.Random(3), reserved={8080})


def test_the_public_port_is_not_given_to_a_service() -> None:
    first, second = choose_free_ports(2, random.Random(5), reserved={8080})
    assert choose_free_ports(1, random.Random(5), reserved={first}) == [second]


def test_ports_are_those_of_the_last_start_but_for_one_that_another_program_has(tmp_path: Path) -> None:
    names = ["nats", "gateway operations", "memory operations"]
    first = choose_ports(names, {}, random.Random(1), reserved=8080)
    write_ports(tmp_path / "ports.json", first)
    assert choose_ports(names, read_ports(tmp_path / "ports.json"), random.Random(2), reserved=8080) == first
    with socket.socket() as other:
        other.bind(("127.0.0.1", first["gateway operations"]))
        other.listen()
        again = choose_ports([*names, "tools operations"], first, random.Random(2), reserved=8080)
    assert {name for name in names if again[name] != first[name]} == {"gateway operations"}
    assert len(set(again.values())) == 4


@pytest.mark.parametrize("written", ["", "{", "[1]", '{"nats": "x"}', '{"nats": 80}'])
def test_remembered_ports_that_cannot_be_used_are_forgotten(tmp_path: Path, written: str) -> None:
    (tmp_path / "ports.json").write_text(written)
    assert read_ports(tmp_path / "ports.json") == {}


def test_backoff_doubles_up_to_its_maximum_and_a_healthy_minute_resets_it() -> None:
    backoff = Backoff(RestartPolicy())
    assert [backoff.after_crash(1.0) for _ in range(8)] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    assert backoff.after_crash(60.0) == 0.2


def test_a_log_is_capped(tmp_path: Path) -> None:
    log = JsonLinesLog(tmp_path / "one.log", file_bytes_max=1000)
    for number in range(100):
        log.write("stdout", b'{"event": "e%d"}' % number)
    log.close()
    kept = [*(tmp_path / "one.log.1").read_text().splitlines(), *(tmp_path / "one.log").read_text().splitlines()]
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 2200
    assert json.loads(kept[-1]) == {"event": "e99"}


def test_a_json_record_is_readable_after_a_crash() -> None:
    line = json.dumps({"timestamp": "t", "level": "error", "event": "startup_failed", "error": "no such file"})
    assert readable(line) == "error startup_failed error=no such file"
    assert readable("Traceback") == "Traceback"
    assert readable("  |     | ValueError: no") == "ValueError: no"


def test_a_traceback_is_shown_without_its_stack() -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in run',
        "    go()",
        "    ^^^^",
        "ValueError: no",
    ]
    assert without_frames(lines) == ["ValueError: no"]
    assert without_frames(lines[:2]) == lines[:2]


def _installation(tmp_path: Path, *, with_local_llm: bool) -> topology.Installation:
    return topology.Installation(
        gateway_port=8080,
        listen_fd=7,
        replicas={},
        data_dir=tmp_path,
        models_dir=tmp_path / "models",
        nats_server=Path("nats-server"),
        nats_config=tmp_path / "nats.conf",
        keys=KeyFolder(tmp_path / "keys"),
        nats_passwords=PASSWORDS,
        llm_api_key="k",
        with_local_llm=with_local_llm,
        nats_start_timeout_s=60.0,
        nats_start_memory_bytes=2**30,
        drain_delay_s=0.0,
        drain_grace_s=30.0,
        inherited_environment={"PATH": "/bin"},
    )


@pytest.mark.parametrize("with_local_llm", [False, True])
def test_each_child_has_its_own_ports_and_knows_all_addresses(tmp_path: Path, with_local_llm: bool) -> None:
    installation = _installation(tmp_path, with_local_llm=with_local_llm)
    ports = list(range(20_000, 20_000 + len(topology.port_names(installation))))
    specs = {spec.name: spec for spec in topology.build(installation, ports)}
    environment = specs["orchestrator"].environment
    own = [
        spec.environment[key]
        for spec in specs.values()
        for key in ("GROUNDWORK_GRPC_ADDRESS",)
        if key in spec.environment
    ]
    assert len(own) == len(set(own)) == 8
    assert environment["GROUNDWORK_RETRIEVER_ADDRESS"] == specs["retriever"].environment["GROUNDWORK_GRPC_ADDRESS"]
    assert environment["GROUNDWORK_NATS_URL"] == "nats://orchestrator:p-orchestrator@127.0.0.1:20000"
    assert ("GROUNDWORK_LLM_BASE_URL" in environment) is with_local_llm
    assert ("local-llm" in specs) is with_local_llm
    assert "GROUNDWORK_LLM_BASE_URL" not in specs["retriever"].environment


def test_a_service_is_told_its_own_secrets_alone(tmp_path: Path) -> None:
    installation = _installation(tmp_path, with_local_llm=True)
    ports = list(range(20_000, 20_000 + len(topology.port_names(installation))))
    for spec in topology.build(installation, ports):
        environment = spec.environment
        signs, stores = spec.name in SIGNERS, spec.name in USERS
        own_key = str(tmp_path / "keys" / f"{spec.name}.json")
        assert environment.get("GROUNDWORK_AUTH_SIGNING_KEY_FILE") == (own_key if signs else None)
        told = environment.get("GROUNDWORK_NATS_URL")
        assert told == (f"nats://{spec.name}:p-{spec.name}@127.0.0.1:20000" if stores else None)


def test_the_users_keys_and_message_store_are_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AUTH_SIGNING_KEY", "AUTH_PUBLIC_KEYS", "AUTH_SECRET", "NATS_URL", "NATS_CA_FILE", "LOG_LEVEL"):
        monkeypatch.setenv(f"GROUNDWORK_{name}", "x")
    handed_on = inherited_environment()
    assert "GROUNDWORK_LOG_LEVEL" in handed_on
    assert not [name for name in handed_on if name.startswith(("GROUNDWORK_AUTH_", "GROUNDWORK_NATS_"))]


def test_gateways_alone_are_told_the_bootstrap_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDWORK_BOOTSTRAP_KEY", "correct-horse-battery-staple")
    installation = replace(
        _installation(tmp_path, with_local_llm=True),
        inherited_environment=inherited_environment(),
        gateway_environment=gateway_environment(),
    )
    specs = topology.build(installation, list(range(20_000, 20_000 + len(topology.port_names(installation)))))
    assert [spec.name for spec in specs if "correct-horse-battery-staple" in spec.environment.values()] == ["gateway"]


def test_nothing_stops_before_those_who_ask_it(tmp_path: Path) -> None:
    installation = _installation(tmp_path, with_local_llm=True)
    specs = topology.build(installation, list(range(20_000, 20_000 + len(topology.port_names(installation)))))
    stage = {spec.name: spec.stop_stage for spec in specs}
    assert stage["gateway"] < stage["orchestrator"] < stage["ingest-worker"] < stage["retriever"] < stage["reranker"]
    assert max(stage.values()) == stage["nats"]


@pytest.mark.parametrize("sync", ["always", "10s"])
def test_the_message_store_takes_the_chosen_sync_policy(tmp_path: Path, sync: str) -> None:
    config = tmp_path / "nats.conf"
    config.write_text(topology.nats_configuration(tmp_path / "nats", 20_000, PASSWORDS, sync))
    checked = subprocess.run(
        [nats_server_binary(), "-t", "--config", config], capture_output=True, text=True, timeout=60, check=False
    )
    assert checked.returncode == 0, checked.stderr
    assert f"sync_interval: {sync} " in config.read_text()


def test_what_is_acknowledged_is_synced_unless_somebody_chooses_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    assert StandaloneSettings().nats_sync == "always"
    monkeypatch.setenv("GROUNDWORK_NATS_SYNC", "never")
    with pytest.raises(ValidationError):
        StandaloneSettings()


def test_a_service_is_not_killed_before_its_drain_is_over(tmp_path: Path) -> None:
    installation = replace(_installation(tmp_path, with_local_llm=False), drain_delay_s=5.0, drain_grace_s=600.0)
    ports = list(range(20_000, 20_000 + len(topology.port_names(installation))))
    specs = [spec for spec in topology.build(installation, ports) if spec.name != "nats"]
    assert {spec.stop_grace_s for spec in specs} == {607.0}
    for spec in specs:
        assert float(spec.environment["GROUNDWORK_DRAIN_DELAY_S"]) == 5.0
        assert float(spec.environment["GROUNDWORK_DRAIN_GRACE_S"]) == 600.0


def test_a_home_directory_is_found_by_every_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDWORK_DATA_DIR", "~/groundwork")  # as a file of settings says it, which no shell reads
    assert StandaloneSettings().data_dir == Path.home() / "groundwork"
