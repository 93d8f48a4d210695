"""Where people log in by their browser at an OIDC issuer and out again, and where issuers say that somebody was logged out. None
of these needs a caller: the caller is known by what the issuer signed, or by the cookie of their login."""

from html import escape
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse

from kit.errors import GroundworkError, Unauthenticated
from services.gateway.access.auth import SESSION_COOKIE, client_address, note_refusal
from services.gateway.access.keys import Keys
from services.gateway.access.oidc.door import IssuerDoor
from services.gateway.access.oidc.login import CALLBACK, Leaving
from services.gateway.backends import Services
from services.gateway.errors import RouteNotFound, ValidationFailed
from services.gateway.problems import http_status
from services.gateway.serving.cookies import set_cookie
from services.gateway.serving.requests import base_url

router = APIRouter(prefix="/oidc", include_in_schema=False)
_LEAVING_COOKIE = "__Host-groundwork-login"
_AWAY_S = 600
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Groundwork</title>
<p>{}</p><p><a href="/">Back to the console</a></p></html>"""


async def _door(request: Request) -> IssuerDoor:
    keys: Keys | None = request.app.state.api_keys
    if keys is None or keys.issuers is None:
        raise RouteNotFound("no OIDC issuer is listed here (GROUNDWORK_OIDC_ISSUERS_FILE)")
    return keys.issuers


async def _base(request: Request, services: Services) -> str:
    """Where browsers reach this gateway."""
    return base_url(request.scope, services.settings.public_url)


Door = Annotated[IssuerDoor, Depends(_door)]
Base = Annotated[str, Depends(_base)]


@router.get("/issuers")
async def list_issuers(request: Request) -> Response:
    """Where people can log in: nowhere, where no issuer is listed."""
    keys: Keys | None = request.app.state.api_keys
    offered = keys.issuers.logins.offered() if keys and keys.issuers else {}
    return JSONResponse({"issuers": [{"issuer": issuer, "name": name} for issuer, name in offered.items()]})


@router.get("/login")
async def log_in(
    request: Request,
    door: Door,
    base: Base,
    issuer: Annotated[str, Query(max_length=2000)],
    to: Annotated[str, Query(max_length=2000)] = "/",
) -> Response:
    """Sends the browser to the issuer."""
    keys: Keys = request.app.state.api_keys
    try:
        keys.door.count_leaving(client_address(request.scope))
        address, leaving = await door.logins.begin(issuer, base, to)
    except GroundworkError as error:
        note_refusal(request.scope, error)
        return _said(error)
    answer = _redirect(address)
    set_cookie(answer, _LEAVING_COOKIE, leaving.encoded(), _AWAY_S)
    return answer


@router.get(CALLBACK.removeprefix("/oidc"))
async def come_back(request: Request, door: Door, base: Base) -> Response:
    """The browser is back from the issuer: ends the login that it had, begins the new one, and sends it to where it came from."""
    keys: Keys = request.app.state.api_keys
    address = client_address(request.scope)
    try:
        keys.door.count_login(address)
        leaving = Leaving.decoded(request.cookies.get(_LEAVING_COOKIE, ""))
        verified = await door.logins.finish(request.query_params, leaving, base)
        await _end_login(request, door)
        secret, _ = await door.begin_session(verified)
    except GroundworkError as error:
        note_refusal(request.scope, error)
        return _said(error)
    keys.door.note_login(address)
    request.app.state.audit.logged_in(verified.principal, verified.issuer.issuer, address)
    answer = _redirect(leaving.to)
    set_cookie(answer, SESSION_COOKIE, secret, int(verified.issuer.session_hours * 3600))
    set_cookie(answer, _LEAVING_COOKIE, "", 0)
    return answer


@router.post("/logout")
async def log_out(request: Request, door: Door, base: Base) -> Response:
    """Ends the login whose cookie is shown, at all gateways; says where the browser ends it at the issuer too. Harmless when
    repeated."""
    issuer = await _end_login(request, door)
    then = await door.logins.end_address(issuer, base) if issuer else ""
    answer = JSONResponse({"then": then}, headers={"Cache-Control": "no-store"})
    set_cookie(answer, SESSION_COOKIE, "", 0)
    return answer


@router.post("/backchannel-logout")
async def backchannel_logout(door: Door, logout_token: Annotated[str, Form(max_length=16_384)]) -> Response:
    """An issuer says that somebody was logged out (OpenID Connect Back-Channel Logout 1.0): their tokens and logins let nobody in
    any more, and their streams end."""
    try:
        await door.log_out(logout_token)
    except Unauthenticated as error:
        raise ValidationFailed(error.message, field="logout_token") from error  # 400, as the specification has it
    return Response(status_code=200, headers={"Cache-Control": "no-store"})


async def _end_login(request: Request, door: IssuerDoor) -> str:
    """Ends the login whose cookie the browser shows, and returns its issuer; empty where there is no such login. Raises
    ApiKeysUnknown, Unavailable."""
    address = client_address(request.scope)
    try:
        admission = await door.admit_session(request.cookies.get(SESSION_COOKIE, ""), address)
    except Unauthenticated:
        return ""
    assert admission.session is not None
    await door.end_session(admission.session)
    request.app.state.audit.logged_out(admission.principal, admission.issuer, address)
    return admission.issuer


def _redirect(address: str) -> Response:
    return RedirectResponse(address, status_code=303, headers={"Cache-Control": "no-store"})


def _said(error: GroundworkError) -> Response:
    """For a person, who came here by a link."""
    headers = {"Cache-Control": "no-store", "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}
    return HTMLResponse(_PAGE.format(escape(error.message)), status_code=http_status(error), headers=headers)
