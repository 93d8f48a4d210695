"""Who is asking. One dependency of every route under /v1; keys and OIDC will be further ways to a principal, here and nowhere
else. In the local mode every request is the one local user's."""

from collections.abc import AsyncIterator

from fastapi import Request

from kit.principal import Principal, use_principal

PROBE = Principal("local", "gateway-probe")
"""Whom the gateway's own health checks act as; health services ask for no rights."""


async def authenticated(request: Request) -> AsyncIterator[Principal]:
    """The verified caller. Calls to services carry them on until the answer, streamed or not, is out."""
    principal: Principal = request.app.state.local_principal
    with use_principal(principal):
        yield principal
