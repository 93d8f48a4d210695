"""How people without an account come in, where the operator allows it. None of these routes needs a caller: a guest is known by the
work that the browser has done, and from then on by a cookie."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from kit.errors import GroundworkError
from services.gateway.access.auth import GUEST, SESSION_COOKIE, client_address, note_refusal
from services.gateway.access.guests.budgets import ensure_budget
from services.gateway.access.guests.door import GuestDoor
from services.gateway.access.guests.guests import GuestGone
from services.gateway.access.keys import Keys
from services.gateway.backends import Services
from services.gateway.errors import RouteNotFound
from services.gateway.schemas.identity.guests import GuestChallenge, GuestOffer, GuestProof, GuestSession
from services.gateway.schemas.problem import problems
from services.gateway.serving.cookies import set_cookie

router = APIRouter(prefix="/guests", tags=["guests"])
_NO_STORE = {"Cache-Control": "no-store"}


async def _door(request: Request) -> GuestDoor:
    keys: Keys | None = request.app.state.api_keys
    if keys is None or keys.guests is None:
        raise RouteNotFound("no guests are let in here (GROUNDWORK_GUESTS)")
    return keys.guests


Door = Annotated[GuestDoor, Depends(_door)]


@router.get("")
async def get_offer(request: Request, services: Services) -> GuestOffer:
    """Whether people without an account may come in."""
    keys: Keys | None = request.app.state.api_keys
    return GuestOffer(allowed=keys is not None and keys.guests is not None, hours=services.settings.guests_hours)


@router.post("/challenge", responses=problems(404, 429))
async def make_challenge(request: Request, response: Response, door: Door) -> GuestChallenge:
    """Gives work that a client has to do to become a guest: more, the more guests are here and have come from its address."""
    puzzle = await door.challenge(client_address(request.scope))
    response.headers.update(_NO_STORE)
    return GuestChallenge.model_validate(
        {"challenge": puzzle.challenge, "seed": puzzle.seed, "bits": puzzle.bits, "expires_at": puzzle.ends_at}
    )


@router.post("", status_code=201, responses=problems(404, 413, 415, 429))
async def become_guest(
    proof: GuestProof, request: Request, response: Response, door: Door, services: Services
) -> GuestSession:
    """Makes the client a guest, and sets the cookie `__Host-groundwork`. 400 with reason `PROOF_REFUSED` where the proof is none,
    is late or was used."""
    address = client_address(request.scope)
    try:
        await door.check(proof.challenge, proof.solution, address)
        await ensure_budget(services)
        cookie, guest = await door.begin(proof.challenge, proof.solution, address)
    except GroundworkError as error:
        note_refusal(request.scope, error)
        raise
    principal = door.principal(guest)
    request.app.state.audit.logged_in(principal, GUEST, address)
    set_cookie(response, SESSION_COOKIE, cookie, int(services.settings.guests_hours * 3600))
    response.headers.update(_NO_STORE)
    return GuestSession.model_validate(
        {"tenant": principal.tenant_id, "subject": principal.subject, "ends_at": guest.ends_at}
    )


@router.delete("", status_code=204, responses=problems(404))
async def leave(request: Request, response: Response, door: Door) -> None:
    """Ends the stay of the guest whose cookie is shown; all that the guest made is removed within a minute. Harmless when
    repeated."""
    try:
        principal = await door.leave(request.cookies.get(SESSION_COOKIE, ""))
    except GuestGone:
        pass
    else:
        request.app.state.audit.logged_out(principal, GUEST, client_address(request.scope))
    set_cookie(response, SESSION_COOKIE, "", 0)
