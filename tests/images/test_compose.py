"""compose.yaml fits the specification, the Dockerfile, the services' settings and NATS, without Docker."""

import json
import re
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from jsonschema import Draft202012Validator

from kit.jetstream import connect
from kit.process.settings import KeyedServiceSettings, MessageStoreSettings, ServiceSettings
from kit.testing.nats import NatsServer
from ops.signers import SIGNERS
from ops.state import USERS
from services.gateway.settings import GatewaySettings
from services.ingest.settings import IngestSettings
from services.memory.settings import MemorySettings
from services.orchestrator.settings import OrchestratorSettings
from services.reranker.settings import RerankerSettings
from services.retriever.settings import RetrieverSettings
from services.standalone.topology import GRPC_SERVICES
from services.tools.settings import ToolsSettings
from tests.images import dockerfile
from tests.images.compose import compose, environment, ours, resolved, services

SETTINGS: dict[str, type[ServiceSettings]] = {
    "gateway": GatewaySettings,
    "orchestrator": OrchestratorSettings,
    "retriever": RetrieverSettings,
    "reranker": RerankerSettings,
    "ingest": IngestSettings,
    "ingest-worker": IngestSettings,
    "memory": MemorySettings,
    "tools": ToolsSettings,
}
"""The services of Groundwork."""
SERVERS = {"qdrant", "elasticsearch", "vllm"}
"""Those that are not built here."""
HELM = dockerfile.REPOSITORY / "deploy" / "helm" / "groundwork"


def test_file_fits_the_specification_of_compose() -> None:
    schema = json.loads(
        files("check_jsonschema").joinpath("builtin_schemas/vendor/compose-spec.json").read_text("utf-8")
    )
    Draft202012Validator.check_schema(schema)
    assert [
        f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema).iter_errors(compose())
    ] == []


def test_all_services_of_the_system_are_there() -> None:
    assert set(SETTINGS) == {"gateway", *(service.name for service in GRPC_SERVICES)}
    assert set(services()) == {*SETTINGS, *SERVERS, "keys", "nats"}
    assert services()["ingest-worker"]["command"] == ["worker"]


@pytest.mark.parametrize("name", sorted(ours()))
def test_service_is_built_from_a_target_that_is_an_image(name: str) -> None:
    build = ours()[name]["build"]
    assert dockerfile.REPOSITORY / build["dockerfile"] == dockerfile.DOCKERFILE
    assert build["target"] in dockerfile.images()
    assert ours()[name]["image"] == f"localhost/groundwork-{build['target']}:dev"


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_environment_is_of_settings_that_exist_and_is_accepted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {f"GROUNDWORK_{field}".upper() for each in SETTINGS.values() for field in each.model_fields}
    found = {**dockerfile.environment(services()[name]["build"]["target"]), **environment(name)}
    assert {variable for variable in found if variable.startswith("GROUNDWORK_")} <= known
    for variable in ("GROUNDWORK_AUTH_SIGNING_KEY", "GROUNDWORK_AUTH_PUBLIC_KEYS"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in found.items():
        monkeypatch.setenv(variable, value)
    settings = SETTINGS[name]()
    assert str(settings.auth_public_keys_file) == "/keys/public.json"
    assert settings.grpc_address == "0.0.0.0:7000"


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_who_signs_has_its_own_key_and_who_uses_nats_its_own_user(name: str) -> None:
    own = f"/keys/{name}.json" if name in SIGNERS else None
    assert environment(name).get("GROUNDWORK_AUTH_SIGNING_KEY_FILE") == own
    assert issubclass(SETTINGS[name], KeyedServiceSettings) == (name in SIGNERS)
    assert urlsplit(environment(name).get("GROUNDWORK_NATS_URL", "")).username == (name if name in USERS else None)
    assert issubclass(SETTINGS[name], MessageStoreSettings) == (name in USERS)


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_every_address_is_of_a_service_that_listens_there(name: str) -> None:
    listening = {(service, 7000) for service in SETTINGS} | {("nats", 4222), ("qdrant", 6333), ("elasticsearch", 9200)}
    found = environment(name)
    addresses = {urlsplit(f"//{found[each]}") for each in found if each.endswith("_ADDRESS")}
    addresses |= {urlsplit(found[each]) for each in found if each.endswith("_URL") and found[each]}
    assert {(each.hostname, each.port) for each in addresses} <= listening


def test_every_server_that_is_not_built_here_is_named_with_the_version_that_the_chart_has() -> None:
    values = yaml.safe_load((HELM / "values.yaml").read_text("utf-8"))
    for name in SERVERS:
        image = services()[name]["image"]
        chosen = values[name]["image"]
        assert image.rpartition("/")[2] == f"{chosen['name']}:{chosen['tag']}"
        assert not re.match(r"[^/]*[.:][^/]*/", image), (
            "an image without a host comes from wherever the user's Docker looks"
        )


def test_ports_are_open_to_this_machine_only() -> None:
    ports = [port for service in services().values() for port in service.get("ports", ())]
    assert len(ports) == 5
    assert all(resolved(port).startswith("127.0.0.1:") for port in ports)


@pytest.mark.parametrize("name", sorted(ours()))
def test_containers_of_ours_may_do_as_little_as_in_a_cluster(name: str) -> None:
    service = ours()[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]


def test_volumes_are_declared_and_files_are_there() -> None:
    mounts = [volume.split(":")[0] for service in services().values() for volume in service.get("volumes", ())]
    named = {mount for mount in mounts if "/" not in mount}
    assert named == set(compose()["volumes"])
    assert all((dockerfile.REPOSITORY / mount).is_file() for mount in mounts if "/" in mount)


def test_everything_starts_after_what_it_cannot_wait_for_itself() -> None:
    for name in SETTINGS:
        needs = services()[name]["depends_on"]
        assert needs["keys"] == {"condition": "service_completed_successfully"}
        assert set(needs) <= set(services())
    for name, needs in ((name, service.get("depends_on", {})) for name, service in services().items()):
        for needed, how in needs.items():
            assert how["condition"] != "service_healthy" or "healthcheck" in services()[needed], f"{name}: {needed}"


async def test_nats_takes_its_configuration_and_lets_each_service_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in environment("nats").items():
        monkeypatch.setenv(variable, value)
    (tmp_path / "nats-users.conf").write_text((HELM / "files" / "nats-users.conf").read_text("utf-8"))
    text = (dockerfile.REPOSITORY / "deploy" / "compose" / "nats.conf").read_text("utf-8")
    assert "  store_dir: /data\n" in text
    server = NatsServer(tmp_path, text.replace("  store_dir: /data\n", "").replace("8222", '"127.0.0.1:-1"'))
    await server.start()
    try:
        for user in sorted(USERS):
            url = environment(user)["GROUNDWORK_NATS_URL"].replace("@nats:4222", f"@127.0.0.1:{server.port}")
            async with connect(url, name=user) as nats:
                await nats.check()
    finally:
        await server.stop(kill=True)
