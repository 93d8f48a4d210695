"""The rule that keeps the rooms apart: the core of a service knows no transport, no generated code and no vendor."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVICES = Path(__file__).resolve().parents[2] / "services"
EDGES = {"adapters", "handlers.py", "app.py", "__main__.py", "settings.py", "metrics.py"}
VENDORS = {
    "grpc", "google", "groundwork", "nats", "qdrant_edge", "qdrant_client", "tantivy", "elasticsearch", "onnxruntime",
    "openvino", "tokenizers", "torch", "sentence_transformers", "openai", "httpx", "httpx2", "mcp", "mcp_types", "fastapi",
    "starlette", "uvicorn",
}  # fmt: skip
# The gateway and the supervisor have no core: all of the one is edge, all of the other is processes.
CORES = ("orchestrator", "retriever", "reranker", "ingest", "memory", "tools")


def core_modules() -> Iterator[Path]:
    for service in CORES:
        for path in sorted((SERVICES / service).rglob("*.py")):
            if not EDGES & set(path.relative_to(SERVICES / service).parts):
                yield path


@pytest.mark.parametrize("path", list(core_modules()), ids=lambda path: str(path.relative_to(SERVICES)))
def test_core_imports_no_transport_no_generated_code_no_vendor(path: Path) -> None:
    imported = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module.partition(".")[0])
    assert not imported & VENDORS


CHECKED = ("kit", "services", "cli", "bench", "evals", "chaos")


def untyped_stubs(tree: ast.AST) -> Iterator[int]:
    """The lines at which a client of a service is declared as Any, so that the type check says nothing about its calls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            name, annotation = node.arg, node.annotation
        elif isinstance(node, ast.AnnAssign):
            made = node.value.func if isinstance(node.value, ast.Call) else node.target
            name, annotation = ast.unparse(made), node.annotation
        elif isinstance(node, ast.Assign):
            name, annotation = ast.unparse(node.targets[0]), node.value
        else:
            continue
        if name.lower().endswith("stub") and isinstance(annotation, ast.Name) and annotation.id == "Any":
            yield node.lineno


def test_every_stub_has_the_type_of_its_contract() -> None:
    root = SERVICES.parent
    modules = [path for room in CHECKED for path in (root / room).rglob("*.py")]
    found = [
        f"{path.relative_to(root)}:{line}" for path in modules for line in untyped_stubs(ast.parse(path.read_text()))
    ]
    assert not found


def imports_of(path: Path) -> Iterator[str]:
    """The modules from which a module takes names."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def implementations(tree: ast.Module) -> Iterator[str]:
    """Functions of a module, and its classes with methods that are neither data nor a protocol, an enum or an error."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.ClassDef) and any(
            isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) for each in node.body
        ):
            marks = {ast.unparse(each).partition("(")[0] for each in (*node.decorator_list, *node.bases)}
            if not any(
                mark == "dataclass" or mark.endswith(("Enum", "Protocol", "Error", "Exception")) for mark in marks
            ):
                yield node.name


@pytest.mark.parametrize("ports", sorted(SERVICES.glob("*/ports.py")), ids=lambda path: path.parent.name)
def test_ports_import_values_and_no_implementation(ports: Path) -> None:
    found = {}
    for module in imports_of(ports):
        name = module.rpartition(".")[2]
        if module.startswith("services.") and name not in {"models", "errors"}:
            path = SERVICES.parent / (module.replace(".", "/") + ".py")
            found[module] = list(implementations(ast.parse(path.read_text())))
    assert not {module: names for module, names in found.items() if names}


INGEST_ROOMS = ("reading", "documents", "work", "upkeep", "sources")
"""A room may use those before it."""


def test_rooms_of_ingest_lean_one_way() -> None:
    for number, room in enumerate(INGEST_ROOMS):
        for path in sorted((SERVICES / "ingest" / room).rglob("*.py")):
            used = {module.split(".")[2] for module in imports_of(path) if module.startswith("services.ingest.")}
            assert not used & set(INGEST_ROOMS[number + 1 :]), path


FOLDERS = ("kit", "services", "ops", "cli", "chaos", "bench", "evals", "scripts")
MAX_MODULES = 15
"""A folder is a table of contents: with more modules it is read no more."""


def test_no_folder_has_more_modules_than_a_reader_takes_in() -> None:
    counts: dict[str, int] = {}
    for room in FOLDERS:
        for path in (SERVICES.parent / room).rglob("*.py"):
            folder = str(path.parent.relative_to(SERVICES.parent))
            counts[folder] = counts.get(folder, 0) + (path.name != "__init__.py")
    assert not {folder: count for folder, count in counts.items() if count > MAX_MODULES}


ROOMS = (SERVICES.parent / "kit", *(path.parent for path in sorted(SERVICES.glob("*/__init__.py"))))


@pytest.mark.parametrize("room", ROOMS, ids=lambda path: path.name)
def test_no_two_public_types_of_a_service_have_one_name(room: Path) -> None:
    places: dict[str, list[str]] = {}
    for path in sorted(room.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(f"{path.relative_to(room)}:{node.lineno}")
    assert not {name: found for name, found in places.items() if len(found) > 1}
