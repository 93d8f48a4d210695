"""What can be known of the images without building them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from services.reranker.model_files import E5_SMALL_4BIT, MINILM_INT8
from services.standalone.topology import GRPC_SERVICES
from tests.images.dockerfile import (
    BROWSER,
    FOLDER,
    GPU,
    NATS,
    REPOSITORY,
    code,
    environment,
    images,
    last,
    lineage,
    project,
    python_images,
    requirement_lists,
    stages,
)

SERVICES = {"gateway", *(service.module.rpartition(".")[2] for service in GRPC_SERVICES)}
USER = "65532:65532"
FILES = [path for path in sorted(FOLDER.iterdir()) if path.is_file()]


def test_every_service_has_an_image_beside_the_command_line_and_nats() -> None:
    assert set(images()) == {*SERVICES, BROWSER, GPU, "cli", NATS}


def test_make_builds_all_images_but_those_for_gpus_and_browsers() -> None:
    line = re.search(r"^IMAGES \?= (.*)$", (REPOSITORY / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert line
    assert line[1].split() == [name for name in line[1].split() if name in images()]
    assert set(line[1].split()) == set(images()) - {BROWSER, GPU}


@pytest.mark.parametrize("service", sorted(SERVICES))
def test_image_runs_its_service_and_holds_no_other(service: str) -> None:
    assert last(service, "ENTRYPOINT") == f'["python", "-m", "services.{service}"]'
    held = {path.split("/")[1] for path in code(service) if path.startswith("services/") and path.count("/") > 1}
    assert held == {service}
    assert {path.split("/")[0] for path in code(service)} == {"LICENSE", "groundwork", "kit", "services"}


@pytest.mark.parametrize("image", images())
def test_image_runs_as_a_user_who_owns_nothing(image: str) -> None:
    assert last(image, "USER") == USER


@pytest.mark.parametrize("image", images())
def test_nothing_is_run_or_downloaded_in_a_stage_that_is_kept(image: str) -> None:
    """But making the user: a layer of an image is what was copied into it."""
    commands = [line for stage in lineage(image) for line in stage.all("RUN")]
    assert all("pip" not in line and "apt" not in line for line in commands)
    assert len(commands) == (0 if image == NATS else 1)


@pytest.mark.parametrize("image", python_images())
def test_images_share_their_first_layers(image: str) -> None:
    assert [stage.name for stage in lineage(image)][:3] == ["base", "user", "core"]


@pytest.mark.parametrize("image", python_images())
def test_environment_is_that_of_the_supervisor_and_of_a_read_only_file_system(image: str) -> None:
    found = environment(image)
    assert found["GRPC_ENABLE_FORK_SUPPORT"] == "0"
    assert found["OPENBLAS_NUM_THREADS"] == "1"
    assert found["PYTHONDONTWRITEBYTECODE"] == "1"
    assert found["GROUNDWORK_DATA_DIR"] == "/data"


@pytest.mark.parametrize("image", images())
def test_image_says_what_it_is(image: str) -> None:
    labels = " ".join(words for stage in lineage(image) for words in stage.all("LABEL"))
    assert "org.opencontainers.image.title=" in labels
    assert "org.opencontainers.image.description=" in labels


def test_health_is_asked_by_a_module_that_every_image_of_a_service_has() -> None:
    for service in SERVICES:
        module = re.search(r'CMD \["python", "-m", "(kit\.[\w.]+)"]', last(service, "HEALTHCHECK"))
        assert module
        assert f"{module[1].replace('.', '/')}.py" in code(service)
    assert last("cli", "HEALTHCHECK") == "NONE"


@pytest.mark.parametrize("path", [*FILES, REPOSITORY / ".dockerignore"], ids=lambda path: str(path.name))
def test_no_host_and_no_path_of_a_machine_is_written_down(path: Path) -> None:
    text = re.sub(r"org\.opencontainers\.\S+", "", path.read_text("utf-8"))
    assert "://" not in text
    assert not re.search(r"\b[\w-]+\.(com|org|io|net|dev|cloud|ai)\b", text)
    assert not re.search(r"(?<![\w*])/(root|home|work|var|mnt|Users)\b", text)


def test_what_is_copied_from_the_checkout_is_there_and_sent_to_the_builder() -> None:
    sent = [line[1:] for line in (REPOSITORY / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")]
    copied = [
        source
        for stage in stages().values()
        for words in stage.all("COPY")
        if "--from=" not in words
        for source in words.split()[:-1]
    ]
    assert copied
    for source in copied:
        assert (REPOSITORY / source).exists(), source
        assert any(source == entry or source.startswith(f"{entry}/") for entry in sent), source


def test_model_files_are_those_that_the_reranker_reads_and_their_wheels_are_compared() -> None:
    command = stages()["model-files"].all("RUN")[0]
    assert "--require-hashes" in command
    copied = re.search(r"cp --parents (.*) /models$", command)
    assert copied
    files = [each for model in (MINILM_INT8, E5_SMALL_4BIT) for each in (model.weights, model.tokenizer)]
    assert set(copied[1].split()) == {file.path for file in files if file is not None}


def test_layer_is_made_of_its_extras_and_of_those_that_they_name(tmp_path: Path) -> None:
    assert written(tmp_path, "core", "arrays=arrays", "reranker=reranker,gpu") == {
        "core": set(project()["dependencies"]),
        "arrays": {"numpy>=2.0"},
        "reranker": {*extra("reranker"), *extra("inference"), *extra("words"), *extra("gpu")}
        - {"groundwork[arrays]", "groundwork[inference,words]"},
    }


def test_what_is_a_layer_of_its_own_is_not_installed_again_in_others(tmp_path: Path) -> None:
    """Else pip would install again what a layer has left out as unused."""
    found = written(tmp_path, "arrays=arrays", "inference=inference", "reranker=reranker")
    assert found["reranker"] == {*extra("reranker"), *extra("words")} - {"groundwork[inference,words]"}
    assert not found["inference"] & found["arrays"]


def test_extra_that_is_not_there_is_named_with_those_that_are(tmp_path: Path) -> None:
    done = listed(tmp_path, "tools=nonsense")
    assert done.returncode != 0
    assert "'nonsense'" in done.stderr
    assert "gateway" in done.stderr


def test_every_list_is_a_layer_and_every_layer_has_its_list() -> None:
    commands = [line for stage in stages().values() for line in stage.all("RUN")]
    assert {layer for line in commands for layer in re.findall(r"/build/install (\S+)", line)} == set(
        requirement_lists()
    )


def test_what_is_left_out_is_of_layers_that_are_there() -> None:
    lines = (FOLDER / "unused.txt").read_text("utf-8").splitlines()
    named = {line.split()[0] for line in lines if line and not line.startswith("#")}
    assert named
    assert named <= set(requirement_lists())


def extra(name: str) -> list[str]:
    found: list[str] = project()["optional-dependencies"][name]
    return found


def written(folder: Path, *layers: str) -> dict[str, set[str]]:
    done = listed(folder, *layers)
    assert done.returncode == 0, done.stderr
    return {path.stem: set(path.read_text().splitlines()) for path in folder.iterdir()}


def listed(folder: Path, *layers: str) -> "subprocess.CompletedProcess[str]":
    command = [
        sys.executable,
        str(FOLDER / "requirements.py"),
        str(REPOSITORY / "pyproject.toml"),
        str(folder),
        *layers,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)
