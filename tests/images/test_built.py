"""The images as they were built: what each holds and may do, that every service works in its own, and how large they are."""

import io
import json
from functools import cache
from typing import Any

import pytest

from kit.testing.pdf_files import pdf_of
from tests.images.conftest import SERVICES, System, name_of
from tests.images.containers import Containers, Order
from tests.images.dockerfile import BROWSER, GPU, NATS, images, project, python_images
from tests.integration.api import Api
from tests.integration.conftest import DATA
from tests.unit.ingest.office_files import docx_of, epub_of, paragraph, pptx_of, shape, xlsx_of
from tests.unit.ingest.recognizers import picture_of

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

BUILT = [image for image in images() if image not in (BROWSER, GPU)]
PYTHON = [image for image in python_images() if image not in (BROWSER, GPU)]
BASE = "docker.io/library/python:3.11-slim-bookworm"
MOST_ADDED_MB = {
    "gateway": 100,
    "orchestrator": 95,
    "memory": 140,
    "tools": 220,
    "retriever": 205,
    "reranker": 350,
    "ingest": 530,
    "cli": 250,
}
"""Millions of bytes on top of the base, as docs/images.md says."""
MOST_NATS_MB = 25
FACTS = """
import json, os, shutil, subprocess, sys

def writable(folder):
    try:
        with open(os.path.join(folder, "probe"), "w"):
            return True
    except OSError:
        return False

places = ["/", "/app", "/data", "/etc", "/opt/groundwork", "/tmp", "/usr", "/var"]
programs = ["cc", "gcc", "g++", "ld", "make", "strip", "pip", "git"]
print(json.dumps({
    "ids": [os.getuid(), os.getgid(), *os.getgroups()],
    "home": os.path.expanduser("~"),
    "writable": [place for place in places if writable(place)],
    "programs": [name for name in programs if shutil.which(name, path="/opt/groundwork/bin:/usr/bin:/bin:/usr/sbin:/sbin")],
    "pip": subprocess.run([sys.executable, "-m", "pip"], capture_output=True).returncode == 0,
    "left": [place for place in ("/build", "/layers", "/wheels", "/root/.cache") if os.path.exists(place)],
    "owned": [name for folder in ("/app", "/opt/groundwork") for name, _, _ in os.walk(folder) if os.stat(name).st_uid],
}))
"""
IMPORTS = """
import importlib, os, sys
from pathlib import Path

assert "HOME" not in os.environ
root = Path("/app")
tried = 0
for path in sorted([*root.glob("services/*/**/*.py"), *root.glob("cli/**/*.py"), *root.glob("groundwork/**/*.py")]):
    if path.name != "__main__.py":
        importlib.import_module(".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"))
        tried += 1
print(tried)
"""


@cache
def facts(containers: Containers, image: str) -> dict[str, Any]:
    done = containers.run(Order(name_of(image), program=("python", "-c", FACTS)))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("image", PYTHON)
def test_user_owns_nothing_and_writes_only_where_it_is_meant_to(containers: Containers, image: str) -> None:
    found = facts(containers, image)
    assert set(found["ids"]) == {65532}
    assert found["writable"] == ["/data", "/tmp"]
    assert found["owned"] == []
    assert found["home"] == "/tmp"


@pytest.mark.parametrize("image", PYTHON)
def test_nothing_is_left_of_the_build(containers: Containers, image: str) -> None:
    found = facts(containers, image)
    assert (found["programs"], found["pip"], found["left"]) == ([], False, [])


@pytest.mark.parametrize("image", PYTHON)
def test_every_module_can_be_imported_without_a_home(containers: Containers, image: str) -> None:
    done = containers.run(Order(name_of(image), program=("env", "-u", "HOME", "python", "-W", "error", "-c", IMPORTS)))
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20


@pytest.mark.parametrize("image", PYTHON)
def test_images_have_their_first_layers_in_common(containers: Containers, image: str) -> None:
    layers, others = (containers.inspect(name_of(each)).layers for each in (image, "memory"))
    assert list(layers[:-1])[: len(others) - 2] == list(others[:-2])


def test_images_that_compute_have_what_they_compute_with_in_common(containers: Containers) -> None:
    layers = {image: containers.inspect(name_of(image)).layers for image in PYTHON}
    core = len(layers["memory"]) - 2
    assert len({layers[image][core] for image in ("retriever", "tools", "reranker", "ingest")}) == 1
    assert len({layers[image][core + 1] for image in ("reranker", "ingest")}) == 1


@pytest.mark.parametrize("image", BUILT)
def test_labels_say_what_was_built_of_what(containers: Containers, image: str) -> None:
    labels = containers.inspect(name_of(image)).labels
    assert labels["org.opencontainers.image.title"]
    assert labels["org.opencontainers.image.version"] == project()["version"]
    assert labels["org.opencontainers.image.revision"]


@pytest.mark.parametrize("image", PYTHON)
def test_image_adds_no_more_to_the_base_than_it_is_said_to(containers: Containers, image: str) -> None:
    added = containers.inspect(name_of(image)).size_bytes - containers.inspect(BASE).size_bytes
    assert added / 1e6 <= MOST_ADDED_MB[image]


def test_nats_is_one_program(containers: Containers) -> None:
    assert containers.inspect(name_of(NATS)).size_bytes / 1e6 <= MOST_NATS_MB
    assert containers.run(Order(name_of(NATS), ["--version"])).stdout.startswith("nats-server: v2.")


def test_command_line_says_what_it_can_do(containers: Containers) -> None:
    done = containers.run(Order(name_of("cli"), ["cluster", "--help"]))
    assert (done.returncode, "prepare" in done.stdout) == (0, True), done.stderr


def test_command_line_knows_its_release(containers: Containers) -> None:
    done = containers.run(Order(name_of("cli"), ["--version"]))
    assert (done.returncode, done.stdout) == (0, f"groundwork {project()['version']}\n"), done.stderr


@pytest.mark.parametrize("service", SERVICES)
def test_service_is_healthy_by_its_own_command(system: System, service: str) -> None:
    done = system.containers.run(system.order(service, program=("python", "-m", "kit.observability.health")))
    assert (done.returncode, done.stderr) == (0, "")


def test_service_without_settings_says_what_it_lacks(containers: Containers) -> None:
    done = containers.run(Order(name_of("gateway")))
    assert done.returncode == 78
    assert "GROUNDWORK_AUTH_PUBLIC_KEYS_FILE is not set" in done.stderr


def test_files_of_every_format_are_read_in_the_sandbox_and_found(system: System, api: Api) -> None:
    collection_id = api.new_collection()
    picture = io.BytesIO()
    picture_of(["The ferry to Norderney", "leaves at seven o'clock"], size=(640, 320)).save(picture, "PNG")
    documents = {
        "report.pdf": pdf_of(
            [["Repairs", "", "The ferry Wangerooge was docked because of a cracked propeller shaft."]]
        ),
        "minutes.docx": docx_of(paragraph("The harbour master is called Fenna Janssen.")),
        "talk.pptx": pptx_of([shape(["The new pier is 340 metres long."])]),
        "prices.xlsx": xlsx_of([["ticket", "price"], ["day return", "31 euros"]]),
        "book.epub": epub_of({"one": "<p>The lighthouse keeper kept bees on the roof.</p>"}),
        "poster.png": picture.getvalue(),
        **{
            name: (DATA / name).read_bytes()
            for name in ("handbook.md", "lighthouse.txt", "recipe.html", "stations.csv")
        },
    }
    uploaded = {name: api.upload(collection_id, name, content)["id"] for name, content in documents.items()}
    settled = {name: api.settled(document_id) for name, document_id in uploaded.items()}
    assert {name: each["status"] for name, each in settled.items()} == dict.fromkeys(documents, "ready"), settled
    for query, name in (
        ("propeller shaft", "report.pdf"),
        ("harbour master", "minutes.docx"),
        ("length of the new pier", "talk.pptx"),
        ("price of a day return", "prices.xlsx"),
        ("who kept bees", "book.epub"),
        ("ferry to Norderney", "poster.png"),
    ):
        best = api.search(collection_id, query)["hits"][0]
        assert best["document_id"] == uploaded[name], query
    worker = system.running["ingest-worker"].output()
    (sandbox,) = (json.loads(line) for line in worker.splitlines() if '"parser_sandbox"' in line)
    assert sandbox["files"].startswith("Landlock")
    assert sandbox["calls"].startswith("seccomp")


def test_question_is_answered_with_a_citation(api: Api) -> None:
    collection_id = api.new_collection()
    text = [["Repairs", "", "The ferry Wangerooge was docked for nine weeks because of a cracked propeller shaft."]]
    document = api.ingest(collection_id, "report.pdf", pdf_of(text))
    answer = api.qa(collection_id, "Why was the ferry Wangerooge docked?")
    assert "propeller shaft" in json.dumps(answer["answer"])
    assert {citation["document_id"] for citation in answer["citations"]} == {document["id"]}


def test_tool_computes_in_a_process_of_its_own(api: Api) -> None:
    answer = api.converse_json("What is 17 * 23?")
    assert "391" in json.dumps(answer)


def test_first_key_is_made_by_the_image_of_the_command_line(system: System, api: Api) -> None:
    key = system.command_line("keys", "bootstrap").strip()
    assert api.http.get("/v1/collections", headers={"Authorization": f"Bearer {key}"}).is_success


def test_backup_is_made_by_the_image_of_the_command_line(system: System, api: Api) -> None:
    api.new_collection()
    said = system.command_line("backup", "/data/backup.tar")
    assert "/data/backup.tar" in said
    assert (system.folder / "keys" / "backup.tar").stat().st_size > 0


@pytest.mark.parametrize("service", ["ingest-worker", "gateway"])
def test_service_ends_by_itself_when_it_is_told_to(system: System, service: str) -> None:
    """As process 1 of its container, which no signal ends that it does not handle."""
    assert system.running.pop(service).stop() == 0
