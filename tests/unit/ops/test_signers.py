"""What a signing key is good for: what its holder calls, no less and no more."""

import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

from kit.stores.forgetting import SourceKind
from ops.signers import SIGNERS
from services.orchestrator.adapters.services.tools import ASKED_BY_TOOLS

SERVICES = Path(__file__).resolve().parents[3] / "services"
CONTRACTS = ("ingest", "memory", "orchestrator", "reranker", "retriever", "store", "tools")
JOBS = {*(f"jobs/FORGET.{kind}" for kind in SourceKind), "jobs/INGEST", "jobs/LEARN", "jobs/MEMORY"}

COMES_WITH_A_WILDCARD = {"ReadFile", "IndexSourceFile"}
"""What the gateway may call and does not. The one tells nothing but what the bytes say that its caller sends; the other does for a
caller what their next sync does."""


def methods(room: str) -> set[str]:
    package = import_module(f"groundwork.{room}.v1")
    contracts = [
        import_module(f"{package.__name__}.{found.name}")
        for found in iter_modules(package.__path__)
        if found.name.endswith("_pb2")
    ]
    return {
        f"{room}/{method.name}"
        for contract in contracts
        for service in contract.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }


def calls_in(place: Path) -> set[str]:
    """Calls of stubs in a service's code, or in one file, by the method's name, which is unique among those that a signer calls."""
    text = "\n".join(path.read_text() for path in (place.rglob("*.py") if place.is_dir() else [place]))
    return set(re.findall(r"(?:stub|services\.\w+)\.([A-Z]\w+)\(", text)) - {"Check"}


@pytest.mark.parametrize("signer", sorted(SIGNERS))
def test_each_call_of_the_list_is_in_a_contract(signer: str) -> None:
    offered = set().union(*(methods(room) for room in CONTRACTS)) | JOBS
    listed = {call for call in SIGNERS[signer] if not call.endswith("/*")}
    assert listed <= offered
    assert {call.partition("/")[0] for call in SIGNERS[signer]} <= {*CONTRACTS, "jobs"}


@pytest.mark.parametrize(
    ("room", "signers"),
    [("ingest", ["ingest", "ingest-worker"]), ("retriever", ["retriever"])],
)
def test_a_service_may_make_the_calls_that_its_code_makes_and_no_others(room: str, signers: list[str]) -> None:
    """A new call in an adapter needs a line in ops/signers.py."""
    listed = {call for signer in signers for call in SIGNERS[signer]} - JOBS
    assert {call.partition("/")[2] for call in listed} == calls_in(SERVICES / room)


def test_the_orchestrator_may_make_the_calls_that_its_code_makes() -> None:
    assert calls_in(SERVICES / "orchestrator") <= {call.partition("/")[2] for call in SIGNERS["orchestrator"]}


@pytest.mark.parametrize("room", [*ASKED_BY_TOOLS, "memory", "tools"])
def test_the_orchestrator_may_besides_only_make_what_tools_ask_in_its_name(room: str) -> None:
    """A new call in an adapter of the tools service needs a line in ops/signers.py, and one that is gone none."""
    adapter = SERVICES / "tools" / "adapters" / "services" / f"{room}.py"
    asked_by_tools = calls_in(adapter) if room in ASKED_BY_TOOLS else set()
    if room in ASKED_BY_TOOLS and not asked_by_tools:
        pytest.skip(f"no tool asks the {room} service yet")
    own = calls_in(SERVICES / "orchestrator")
    listed = {call for call in SIGNERS["orchestrator"] if call.startswith(f"{room}/")}
    assert listed == {call for call in methods(room) if call.partition("/")[2] in own | asked_by_tools}


def test_tools_ask_only_the_rooms_that_their_caller_means_its_token_for() -> None:
    folder = SERVICES / "tools"
    in_adapters = set().union(*(calls_in(folder / "adapters" / "services" / f"{room}.py") for room in ASKED_BY_TOOLS))
    assert calls_in(folder) == in_adapters


def test_the_gateway_may_make_the_calls_that_its_code_makes() -> None:
    listed = {
        call
        for entry in SIGNERS["gateway"]
        for call in (methods(entry.partition("/")[0]) if entry.endswith("/*") else {entry})
    }
    assert calls_in(SERVICES / "gateway") == {call.partition("/")[2] for call in listed} - COMES_WITH_A_WILDCARD


def test_each_signer_has_texts_forgotten_of_its_own_kind_only() -> None:
    found = {
        signer: {call.partition(".")[2] for call in calls if "FORGET" in call} for signer, calls in SIGNERS.items()
    }
    kinds = {signer: of_signer for signer, of_signer in found.items() if of_signer}
    assert kinds == {
        "orchestrator": {"run"},
        "memory": {"fact", "thread"},
        "ingest": {"document"},
        "ingest-worker": {"document"},
    }
    assert set().union(*kinds.values()) == set(SourceKind)


def test_nobody_but_the_gateway_may_do_what_users_do() -> None:
    for signer in set(SIGNERS) - {"gateway"}:
        rooms = ("orchestrator/",) if signer == "orchestrator" else ("ingest/", "orchestrator/")  # tools keep documents
        assert not [call for call in SIGNERS[signer] if call.startswith(rooms)]
        assert not [call for call in SIGNERS[signer] if call.endswith("/*")]
    assert "reranker" not in SIGNERS, "it only answers"
    assert SIGNERS["tools"] == (), "its key seals, and signs no calls"
