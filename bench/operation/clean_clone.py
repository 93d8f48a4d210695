"""From nothing to the first cited answer: clone, install, start, upload, ask. Installs from the package index that pip is set up
with, so the network and pip's cache are part of the figure."""

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx

from bench.report import Figure, Part
from evals.system import HTTP_TIMEOUT_S, stop, system_environment, wait_until_ready
from evals.tables import Table
from kit.testing.harness import free_port

TARGET_S = 240.0
_QUESTION = "Where does Groundwork keep its data?"
_DOCUMENT = (
    "Groundwork keeps its data in one directory. The directory is named by GROUNDWORK_DATA_DIR. Ctrl-C stops it.\n"
)


def measure() -> Part:
    """Clones the last commit of this repository, so uncommitted changes are not measured."""
    phases: list[tuple[str, float]] = []

    def phase(name: str, action: Callable[[], None]) -> None:
        began = time.perf_counter()
        action()
        phases.append((name, time.perf_counter() - began))

    with tempfile.TemporaryDirectory(prefix="groundwork-clone-", ignore_cleanup_errors=True) as folder:
        clone, port, log = Path(folder, "groundwork"), free_port(), Path(folder, "up.log")
        url = f"http://127.0.0.1:{port}"
        environment = _environment(Path(folder, "data"), port)
        phase(
            "git clone",
            lambda: _run(["git", "clone", "--quiet", str(Path.cwd()), str(clone)], Path(folder), environment),
        )
        phase("make setup", lambda: _run(["make", "setup"], clone, environment))
        with log.open("wb") as output:
            # A group of its own: make does not pass an interrupt on, it takes for granted that all of its group get it.
            process = subprocess.Popen(
                ["make", "run"],
                cwd=clone,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                phase("make run until ready", lambda: wait_until_ready(url, process, log))
                phase("upload until ready", lambda: _upload(url))
                phase("question until the cited answer", lambda: _ask(url))
            finally:
                stop(process)
    total_s = sum(seconds for _, seconds in phases)
    return Part(
        title="From a clean clone to the first cited answer",
        about="Once. The installation takes its packages from the index and the cache that pip is set up with.",
        figures=(
            Figure("clean clone to first cited answer, s", f"{total_s:.0f}", f"< {TARGET_S:.0f}", total_s < TARGET_S),
        ),
        tables=(Table(("phase", "s"), [(name, f"{seconds:.1f}") for name, seconds in phases]),),
    )


def _environment(data_dir: Path, port: int) -> dict[str, str]:
    # The clone brings its own environment and models: nothing of this one may help it.
    foreign = ("GROUNDWORK_MODELS_DIR", "VIRTUAL_ENV", "PYTHONPATH", "MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    inherited = {name: value for name, value in system_environment(data_dir, port).items() if name not in foreign}
    path = os.environ["PATH"].split(os.pathsep)
    own = os.environ.get("VIRTUAL_ENV", "")
    return {**inherited, "PATH": os.pathsep.join(each for each in path if not own or not each.startswith(own))}


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{(done.stdout + done.stderr)[-3000:]}")


def _upload(url: str) -> None:
    with httpx.Client(base_url=url, timeout=HTTP_TIMEOUT_S, trust_env=False) as client:
        files = {"file": ("groundwork.txt", _DOCUMENT.encode())}
        answer = client.post("/v1/collections/default/documents", files=files).raise_for_status()
        document = answer.json()["document"]
        while document["status"] != "ready":
            if document["status"] == "failed":
                raise RuntimeError(f"the upload failed: {document['error']}")
            time.sleep(0.05)
            document = client.get(f"/v1/documents/{document['id']}").raise_for_status().json()


def _ask(url: str) -> None:
    with httpx.Client(base_url=url, timeout=HTTP_TIMEOUT_S, trust_env=False) as client:
        body = {"question": _QUESTION, "collection_ids": ["default"]}
        answer = client.post("/v1/qa", json=body).raise_for_status().json()
        if not answer["citations"]:
            raise RuntimeError(f"the first answer carries no citation: {answer['answer']}")
