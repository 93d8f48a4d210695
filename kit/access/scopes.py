"""Which scope the caller of a method needs, as the contract of the method declares (groundwork/auth/v1/auth.proto)."""

import functools

from google.protobuf import descriptor_pool
from groundwork.auth.v1 import auth_pb2

from kit.access.principal import ADMIN, INGEST, OPERATOR, QUERY
from kit.errors import Internal

_SCOPES: dict[int, str | None] = {
    auth_pb2.SCOPE_QUERY: QUERY,
    auth_pb2.SCOPE_INGEST: INGEST,
    auth_pb2.SCOPE_ADMIN: ADMIN,
    auth_pb2.SCOPE_OPERATOR: OPERATOR,
    auth_pb2.SCOPE_INTERNAL: None,
}


@functools.cache
def scope_of(method: str) -> str | None:
    """The scope that a caller of `method` ("/groundwork.retriever.v1.RetrieverService/Search") needs; None when only services call
    it among themselves, and the caller's key decides alone.

    Raises Internal when its contract declares none: then nobody may call it.
    """
    name = method.lstrip("/").replace("/", ".")
    try:
        declared = descriptor_pool.Default().FindMethodByName(name).GetOptions().Extensions[auth_pb2.scope]
        return _SCOPES[declared]
    except KeyError as error:
        raise Internal(
            f"{name} declares no scope; declare one in its contract, see groundwork/auth/v1/auth.proto",
            reason="NO_SCOPE_DECLARED",
        ) from error
