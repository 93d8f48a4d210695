"""deploy/images/Dockerfile as data: its stages, and of each image what is installed in it and which code lies in it."""

import re
import runpy
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "deploy" / "images"
DOCKERFILE = FOLDER / "Dockerfile"
GPU, BROWSER = "reranker-gpu", "tools-browser"
"""The images that are only built where they are asked for."""
NATS = "nats"
"""The one image without Python."""


@dataclass
class Stage:
    """`FROM base AS name` and what follows."""

    name: str
    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, verb: str) -> list[str]:
        return [words for known, words in self.instructions if known == verb]


@cache
def stages() -> dict[str, Stage]:
    found: dict[str, Stage] = {}
    stage = Stage("", "")
    for line in _lines(DOCKERFILE.read_text("utf-8")):
        verb, _, words = line.partition(" ")
        if verb == "FROM":
            base, _, name = words.partition(" AS ")
            stage = found[name] = Stage(name, base)
        else:
            stage.instructions.append((verb, words))
    return found


def images() -> list[str]:
    """The stages that are images to run."""
    return [name for name, stage in stages().items() if stage.all("ENTRYPOINT")]


def python_images() -> list[str]:
    return [name for name in images() if name != NATS]


def lineage(image: str) -> list[Stage]:
    """The stage and what it is made from, the base first."""
    stage = stages()[image]
    before = lineage(stage.base) if stage.base in stages() else []
    return [*before, stage]


def last(image: str, verb: str) -> str:
    """What holds of the instructions of that kind: the last one."""
    return [words for stage in lineage(image) for words in stage.all(verb)][-1]


def environment(image: str) -> dict[str, str]:
    words = [word for stage in lineage(image) for line in stage.all("ENV") for word in shlex.split(line)]
    return dict(word.split("=", 1) for word in words)


def requirements(image: str) -> set[str]:
    """Names of the distributions that are asked for, without those that these need."""
    copied = [words for stage in lineage(image) for words in stage.all("COPY")]
    layers = {"core", *(layer for words in copied for layer in re.findall(r"/layers/(\S+)", words))}
    return {_name(line) for layer in layers for line in requirement_lists()[layer]}


@cache
def requirement_lists() -> dict[str, list[str]]:
    """What is installed as each layer, as the build writes it down."""
    (command,) = (line for line in stages()["requirements"].all("RUN") if "requirements.py" in line)
    layers = command.rpartition(" /requirements ")[2].split()
    script = runpy.run_path(str(FOLDER / "requirements.py"))
    found: dict[str, list[str]] = script["lists"](project(), layers)
    return found


def code(image: str) -> dict[str, Path]:
    """Where each file of ours lies in /app, and its source."""
    return {
        str(Path(target, path.relative_to(source))): path
        for part in _code_parts(image)
        for source, target in _copied_to(part)
        for path in ([source] if source.is_file() else source.rglob("*"))
        if path.is_file() and not is_ignored(path)
    }


def is_ignored(path: Path) -> bool:
    """By the lines of .dockerignore that name folders or endings."""
    lines = (REPOSITORY / ".dockerignore").read_text("utf-8").splitlines()
    folders = [line for line in lines if line and not line.startswith(("#", "!", "*"))]
    relative = path.relative_to(REPOSITORY)
    return (
        any(relative.is_relative_to(folder) for folder in folders)
        or "__pycache__" in path.parts
        or path.suffix == ".pyi"
    )


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    return found


def _lines(text: str) -> Iterator[str]:
    joined = re.sub(r"\\\n\s*", "", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    return (line for line in joined.splitlines() if line)


def _name(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def _code_parts(image: str) -> list[str]:
    copied = [words.split() for stage in lineage(image) for words in stage.all("COPY") if "--from=code" in words]
    return [part for words in copied for part in words if part.startswith("/") and part != "/app/"]


def _copied_to(part: str) -> Iterator[tuple[Path, str]]:
    """The sources that the stage `code` puts below a folder, and where they lie in /app."""
    for words in stages()["code"].all("COPY"):
        *sources, target = words.split()
        inside = target.removeprefix(f"{part}/")
        for source in sources if inside != target else ():
            yield REPOSITORY / source, f"{inside}{Path(source).name}" if inside.endswith("/") else inside
