"""Several processes of a service: what is asked for, what each is told, and in which order they are restarted."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from kit.access.key_folder import KeyFolder
from kit.rpc.addresses import addresses
from ops.state import USERS
from services.standalone import topology
from services.standalone.app import read_standalone_settings
from services.standalone.errors import SettingsRefused, StartRefused
from services.standalone.replicas import REPLICABLE, parse_replicas, require_index_servers, unused_folders
from services.standalone.settings import StandaloneSettings
from services.standalone.supervising.models import ChildSpec
from services.standalone.supervising.restarting import choose

FEW = {"orchestrator": 3, "gateway": 2, "ingest-worker": 2, "reranker": 2}


def build(data_dir: Path, replicas: dict[str, int]) -> dict[str, ChildSpec]:
    installation = topology.Installation(
        gateway_port=8080,
        listen_fd=7,
        replicas=replicas,
        data_dir=data_dir,
        models_dir=data_dir / "models",
        nats_server=Path("nats-server"),
        nats_config=data_dir / "nats.conf",
        keys=KeyFolder(data_dir / "keys"),
        nats_passwords={"groundwork": "p", **{name: f"p-{name}" for name in USERS}},
        llm_api_key="k",
        with_local_llm=False,
        nats_start_timeout_s=60.0,
        nats_start_memory_bytes=2**30,
        drain_delay_s=0.0,
        drain_grace_s=30.0,
        inherited_environment={"PATH": "/bin"},
    )
    ports = list(range(20_000, 20_000 + len(topology.port_names(installation))))
    return {spec.name: spec for spec in topology.build(installation, ports)}


def test_every_service_of_ours_can_run_several_times() -> None:
    assert set(REPLICABLE) == {*(service.name for service in topology.GRPC_SERVICES), "gateway"}


def test_numbers_are_read_with_spaces_and_without() -> None:
    assert parse_replicas("orchestrator=3, gateway = 2,") == {"orchestrator": 3, "gateway": 2}
    assert parse_replicas("") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("orchestrator", r"'orchestrator' is not SERVICE=NUMBER; write several with commas: orchestrator=3,gateway=2"),
        ("orchestrator=two", r"'orchestrator=two' is not SERVICE=NUMBER"),
        ("orchestrator=-1", r"'orchestrator=-1' is not SERVICE=NUMBER"),
        ("orchestrator=0", r"orchestrator=0: run at least 1 and at most 16 of a service"),
        ("orchestrator=17", r"orchestrator=17: run at least 1 and at most 16 of a service"),
        ("orchestrator=100000", r"orchestrator=100000: run at least 1 and at most 16 of a service"),
        ("nats=3", r"nats cannot run several times side by side here; these can: reranker, retriever, .*, gateway"),
        ("orchestra=2", r"orchestra cannot run several times side by side here"),
        ("gateway=2,gateway=3", r"gateway is named twice"),
    ],
)
def test_what_is_no_number_of_a_service_is_refused_with_what_to_write(text: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        StandaloneSettings(replicas=text)


def test_the_number_on_the_command_line_goes_before_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROUNDWORK_REPLICAS", "gateway=2")
    assert read_standalone_settings().replicas == "gateway=2"
    assert read_standalone_settings(replicas="tools=2").replicas == "tools=2"
    with pytest.raises(SettingsRefused, match=r"GROUNDWORK_REPLICAS=tools=0 is not valid: tools=0: run at least 1"):
        read_standalone_settings(replicas="tools=0")


def test_several_retrievers_need_both_indexes_on_servers() -> None:
    both = {"GROUNDWORK_QDRANT_URL": "http://q:6333", "GROUNDWORK_ELASTICSEARCH_URL": "http://e:9200"}
    for left_out in both:
        environment = {name: value for name, value in both.items() if name != left_out}
        with pytest.raises(
            StartRefused, match=rf"retriever=2: the indexes .* belong to one retriever.*set {left_out}$"
        ):
            require_index_servers({"retriever": 2}, environment)
        require_index_servers({"retriever": 1, "orchestrator": 3}, environment)
    require_index_servers({"retriever": 2}, both)


def test_each_process_has_its_own_ports_and_its_callers_know_all_of_them(tmp_path: Path) -> None:
    specs = build(tmp_path, FEW)
    names = [name for name in specs if specs[name].service == "orchestrator"]
    assert names == ["orchestrator", "orchestrator-2", "orchestrator-3"]
    own = [specs[name].environment["GROUNDWORK_GRPC_ADDRESS"] for name in names]
    assert addresses(specs["gateway"].environment["GROUNDWORK_ORCHESTRATOR_ADDRESS"]) == own
    ports = [
        spec.environment[variable].rpartition(":")[2]
        for spec in specs.values()
        for variable in ("GROUNDWORK_GRPC_ADDRESS", "GROUNDWORK_OPS_PORT")
        if variable in spec.environment
    ]
    assert len(ports) == len(set(ports)) == 2 * (len(specs) - 1)
    assert len(specs) == 1 + len(REPLICABLE) + 2 + 1 + 1 + 1


def test_the_processes_of_a_service_are_one_service_to_all_others(tmp_path: Path) -> None:
    specs = build(tmp_path, FEW)
    for variable in ("GROUNDWORK_NATS_URL", "GROUNDWORK_AUTH_SIGNING_KEY_FILE"):
        assert len({specs[name].environment[variable] for name in ("orchestrator", "orchestrator-2")}) == 1
    assert specs["orchestrator-2"].stop_stage == specs["orchestrator"].stop_stage


def test_gateways_share_the_public_socket_and_are_asked_one_by_one(tmp_path: Path) -> None:
    specs = build(tmp_path, FEW)
    assert {name for name, spec in specs.items() if spec.inherited_fds} == {"gateway", "gateway-2"}
    for name in ("gateway", "gateway-2"):
        assert specs[name].inherited_fds == (7,)
        assert specs[name].environment["GROUNDWORK_LISTEN_FD"] == "7"
        assert str(specs[name].probe.port) == specs[name].environment["GROUNDWORK_OPS_PORT"]


def test_model_servers_keep_a_store_each_and_one_that_runs_no_more_loses_its(tmp_path: Path) -> None:
    specs = build(tmp_path, FEW)
    own = tmp_path / "replicas" / "reranker-2"
    assert specs["reranker"].environment["GROUNDWORK_DATA_DIR"] == str(tmp_path)
    assert specs["reranker-2"].environment["GROUNDWORK_DATA_DIR"] == str(own)
    assert specs["ingest-worker-2"].environment["GROUNDWORK_DATA_DIR"] == str(tmp_path)
    own.mkdir(parents=True)
    assert unused_folders(tmp_path, FEW) == []
    assert unused_folders(tmp_path, {"reranker": 1}) == unused_folders(tmp_path, {}) == [own]


RUNNING = {
    name: {"service": service}
    for service, names in {
        "nats": ["nats"],
        "local-llm": ["local-llm"],
        "ingest": ["ingest", "ingest-2"],
        "ingest-worker": ["ingest-worker"],
        "orchestrator": ["orchestrator", "orchestrator-2"],
        "gateway": ["gateway"],
    }.items()
    for name in names
}


def test_all_services_are_restarted_but_the_message_store_and_the_language_model() -> None:
    others = ("ingest", "ingest-2", "ingest-worker", "orchestrator", "orchestrator-2", "gateway")
    assert choose(RUNNING, []) == list(others)


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["gateway", "ingest"], ["ingest", "ingest-2", "gateway"]),
        (["orchestrator-2"], ["orchestrator-2"]),
        (["orchestrator-1", "ingest-worker"], ["ingest-worker", "orchestrator"]),
        (["local-llm"], ["local-llm"]),
    ],
)
def test_a_service_means_all_of_its_processes(names: list[str], chosen: list[str]) -> None:
    assert choose(RUNNING, names) == chosen


@pytest.mark.parametrize(
    ("names", "message"),
    [(["nats"], "stop and start Groundwork"), (["gateway-2", "tools"], "There is no gateway-2, tools to restart")],
)
def test_what_cannot_be_restarted_is_refused(names: list[str], message: str) -> None:
    with pytest.raises(StartRefused, match=message):
        choose(RUNNING, names)
