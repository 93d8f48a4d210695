"""Every method of every contract, called with every kind of token that is not good for it: refused before a handler sees the
request, so that nothing is told of what exists. The servicers answer UNIMPLEMENTED: that is what a call gets that came through."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor

from kit.access.keys import Jwk, new_key, public_half
from kit.access.principal import OPERATOR, SCOPES, Principal
from kit.access.scopes import scope_of
from kit.access.tokens import TOKEN_METADATA_KEY, TokenSigner
from kit.errors import Code, GroundworkError
from kit.rpc.server import make_server
from kit.rpc.status import from_rpc_error
from kit.testing.harness import make_signer, make_verifier
from ops.signers import SIGNERS
from tests.service.access.contracts import (
    OF_NO_TENANT,
    add_unimplementing,
    ask,
    call_name,
    methods,
    path_of,
    request_class,
)

OPERA = Principal("acme", "opera", frozenset({OPERATOR}))
LIMITED = new_key("limited")
"""A key whose tokens are good for one call that no contract has."""
NOW_S = 1_000_000.0

Token = Callable[[MethodDescriptor], str]


def _room(method: MethodDescriptor) -> str:
    return call_name(method).partition("/")[0]


def _other_room(method: MethodDescriptor) -> str:
    return "memory" if _room(method) != "memory" else "retriever"


def _signer(key: Jwk | None = None, at_s: float = NOW_S) -> TokenSigner:
    return make_signer(key, clock=lambda: at_s)


@dataclass(frozen=True)
class Case:
    """A kind of token, and how a call with it is refused."""

    name: str
    token: Token
    code: Code
    reason: str


CASES = [
    Case("none", lambda _: "", Code.UNAUTHENTICATED, "BAD_TOKEN"),
    Case("garbage", lambda _: "Bearer nonsense", Code.UNAUTHENTICATED, "BAD_TOKEN"),
    Case("unsigned", lambda m: _unsigned(_signer().sign(OPERA, _room(m))), Code.UNAUTHENTICATED, "BAD_TOKEN"),
    Case("unknown_key", lambda m: _signer(new_key("x")).sign(OPERA, _room(m)), Code.UNAUTHENTICATED, "BAD_TOKEN"),
    Case("expired", lambda m: _signer(None, 0.0).sign(OPERA, _room(m)), Code.UNAUTHENTICATED, "TOKEN_EXPIRED"),
    Case("other_room", lambda m: _signer().sign(OPERA, _other_room(m)), Code.UNAUTHENTICATED, "BAD_TOKEN"),
    Case("of_a_job", lambda _: _signer().sign_job(OPERA, "Q", "s", "1", b""), Code.UNAUTHENTICATED, "BAD_TOKEN"),
    Case("other_calls", lambda m: _signer(LIMITED).sign(OPERA, _room(m)), Code.PERMISSION_DENIED, "CALL_NOT_ALLOWED"),
]


def _unsigned(token: str) -> str:
    return token.rpartition(".")[0] + "."


@asynccontextmanager
async def all_contracts(*public: Jwk) -> AsyncIterator[grpc.aio.Channel]:
    """A channel to a server of every contract, which knows these public keys too."""
    server = make_server(make_verifier(*public, clock=lambda: NOW_S))
    add_unimplementing(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            yield channel
    finally:
        await server.stop(None)


async def refusal(channel: grpc.aio.Channel, method: MethodDescriptor, token: str) -> GroundworkError:
    """What a call with the token is told; Unimplemented when it came to the handler."""
    metadata = ((TOKEN_METADATA_KEY, token),) if token else ()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await ask(channel, method, request_class(method)(), metadata=metadata, timeout=60)
    return from_rpc_error(caught.value)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_call_without_a_good_token_is_refused(case: Case) -> None:
    async with all_contracts(public_half(LIMITED, ["store/Nothing"])) as channel:
        told = {call_name(each): await refusal(channel, each, case.token(each)) for each in methods()}
    wrong = {call: error for call, error in told.items() if (error.code, error.reason) != (case.code, case.reason)}
    assert not wrong


@pytest.mark.parametrize("held", [(), *((scope,) for scope in SCOPES), ("query", "ingest"), ("Query", "*", "internal")])
async def test_call_is_answered_to_those_who_have_the_scope(held: tuple[str, ...]) -> None:
    principal, signer = replace(OPERA, scopes=frozenset(held)), _signer()
    async with all_contracts() as channel:
        for method in methods():
            error = await refusal(channel, method, f"Bearer {signer.sign(principal, _room(method))}")
            needed = scope_of(path_of(method))
            if needed is None or principal.may(needed):
                assert error.code is Code.UNIMPLEMENTED, call_name(method)
            else:
                assert (error.code, error.reason) == (Code.PERMISSION_DENIED, "SCOPE_MISSING"), call_name(method)
                assert error.metadata["scope"] == needed


async def test_token_that_the_gateway_sends_reaches_no_method_that_only_services_call() -> None:
    """As signed by the gateway's own key, with the list of calls that it is published with."""
    key, rooms = new_key("gateway"), sorted({_room(method) for method in methods()})
    token = _signer(key).sign(OPERA, *rooms)
    async with all_contracts(public_half(key, SIGNERS["gateway"])) as channel:
        for method in methods():
            if scope_of(path_of(method)) is None and call_name(method) not in OF_NO_TENANT:
                error = await refusal(channel, method, f"Bearer {token}")
                assert (error.code, error.reason) == (Code.PERMISSION_DENIED, "CALL_NOT_ALLOWED"), call_name(method)
