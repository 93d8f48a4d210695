"""Every method declares which scope its callers need, and nobody who speaks for users can reach what only services call."""

import pytest
from google.protobuf.descriptor import MethodDescriptor

from kit.access.keys import PublicKey
from kit.access.principal import ADMIN, INGEST, OPERATOR, QUERY, SCOPES, Principal
from kit.access.scopes import scope_of
from kit.errors import Internal, PermissionDenied
from ops.signers import SIGNERS
from tests.service.access.contracts import OF_NO_TENANT, call_name, methods, path_of


@pytest.mark.parametrize("method", methods(), ids=call_name)
def test_method_declares_its_scope(method: MethodDescriptor) -> None:
    assert scope_of(path_of(method)) in {None, *SCOPES}


@pytest.mark.parametrize("method", ["/groundwork.ingest.v1.IngestService/Nothing", "/grpc.testing.Test/Call"])
def test_method_without_a_declaration_is_refused(method: str) -> None:
    with pytest.raises(Internal, match="declares no scope"):
        scope_of(method)


def test_what_users_ask_for_reaches_no_method_that_only_services_call() -> None:
    """The gateway signs in the name of users; a token that it sends to a service is good for these calls and no others."""
    internal = {call_name(method) for method in methods() if scope_of(path_of(method)) is None}
    assert _signed_by("gateway") & internal == OF_NO_TENANT


def test_signers_are_named_for_methods_that_exist() -> None:
    known = {call_name(method) for method in methods()}
    named = {call for calls in SIGNERS.values() for call in calls if not call.startswith("jobs/") and call[-1] != "*"}
    assert named <= known


def test_each_internal_method_that_changes_or_shows_data_has_a_signer() -> None:
    signed = set().union(*map(_signed_by, SIGNERS))
    unsigned = {call_name(method) for method in methods()} - signed
    # Asked by tests, and by people with a key of their own.
    assert unsigned == {"retriever/CorpusStats"}


def _signed_by(holder: str) -> set[str]:
    calls = frozenset(SIGNERS[holder])
    return {call_name(method) for method in methods() if _allows(calls, call_name(method))}


def _allows(calls: frozenset[str], call: str) -> bool:
    room, name = call.split("/")
    return PublicKey("test", None, calls).allows(room, name)  # type: ignore[arg-type] # no key is needed to read its list


@pytest.mark.parametrize(
    ("scopes", "granted"),
    [
        ((), ()),
        ((QUERY,), (QUERY,)),
        ((INGEST,), (INGEST,)),
        ((QUERY, INGEST), (QUERY, INGEST)),
        ((ADMIN,), (QUERY, INGEST, ADMIN)),
        ((OPERATOR,), SCOPES),
        (("unknown",), ()),
    ],
)
def test_scope_grants_itself_and_what_it_includes(scopes: tuple[str, ...], granted: tuple[str, ...]) -> None:
    principal = Principal("acme", "ann", frozenset(scopes))
    for scope in SCOPES:
        if scope in granted:
            principal.require(scope)
        else:
            with pytest.raises(PermissionDenied) as caught:
                principal.require(scope)
            assert (caught.value.reason, caught.value.metadata) == ("SCOPE_MISSING", {"scope": scope})
            assert repr(scope) in caught.value.message
    assert principal.sees_all is (ADMIN in granted)
