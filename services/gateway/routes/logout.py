"""Where OIDC issuers say that somebody was logged out (OpenID Connect Back-Channel Logout 1.0). They are known by the token that
they send, so no caller is asked for here."""

from typing import Annotated

from fastapi import APIRouter, Form, Request, Response

from kit.errors import Unauthenticated
from services.gateway.access.keys import Keys
from services.gateway.errors import RouteNotFound, ValidationFailed

router = APIRouter(prefix="/oidc", include_in_schema=False)


@router.post("/backchannel-logout")
async def backchannel_logout(request: Request, logout_token: Annotated[str, Form(max_length=16_384)]) -> Response:
    """Ends the sessions that the token names: their tokens let nobody in any more, and their streams end."""
    keys: Keys | None = request.app.state.api_keys
    if keys is None or keys.tokens is None:
        raise RouteNotFound(
            "no OIDC issuer is listed here (GROUNDWORK_OIDC_ISSUERS_FILE), so nobody can be logged out by one"
        )
    try:
        await keys.tokens.log_out(logout_token)
    except Unauthenticated as error:
        raise ValidationFailed(error.message, field="logout_token") from error  # 400, as the specification has it
    return Response(status_code=200, headers={"Cache-Control": "no-store"})
