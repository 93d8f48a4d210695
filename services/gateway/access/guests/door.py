"""Lets guests in: by a proof of work at first, by their cookie from then on."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import structlog

from kit.access.principal import Principal
from kit.errors import GroundworkError, Unauthenticated
from kit.jetstream import Nats
from kit.process.waiting import FailureLogLimit
from services.gateway.access.auth import FIRST_KEYS_S, GUEST, Admission
from services.gateway.access.guests.guests import Guest, GuestGone, Guests, GuestsStale, TooManyGuests
from services.gateway.access.guests.puzzles import Puzzle, Puzzles, needed_bits
from services.gateway.errors import TooManyWrongKeys
from services.gateway.serving.connection_table import origin_of
from services.gateway.serving.rate_limiter import RateLimiter
from services.gateway.settings import GatewaySettings

_log = structlog.get_logger()
_RETRY_S = 1.0
_RECHECK_S = 5.0
"""How often the clock is read again while a stay lasts: it may have been set."""
_TRIES_A_MINUTE = 60
"""Challenges and solutions of one address. A browser needs one of each."""


class GuestDoor:
    """Guests at this gateway. `now` is the time of day in seconds since the epoch, `clock` counts seconds."""

    def __init__(self, settings: GatewaySettings, now: Callable[[], float], clock: Callable[[], float]) -> None:
        self._settings = settings
        self._now = now
        self._clock = clock
        self._puzzles = Puzzles(settings.signing_key(), now)
        self._tries = RateLimiter(_TRIES_A_MINUTE, clock)
        self._guests: Guests | None = None
        self._is_open = asyncio.Event()
        self._beginning = asyncio.Lock()
        """Guests begin one after another: each is counted before the next is let in."""

    async def challenge(self, address: str) -> Puzzle:
        """A puzzle for a client of this address. Raises TooManyGuests, TooManyWrongKeys, GuestsStale."""
        origin = self._counted(address)
        return self._puzzles.make(await self._needed(origin), origin)

    async def check(self, challenge: str, solution: str, address: str) -> None:
        """Counts a try, and checks its proof. Raises ProofRefused, TooManyGuests, TooManyWrongKeys, GuestsStale."""
        self._counted(address)
        await self._solved(challenge, solution, self._origin(address))

    async def begin(self, challenge: str, solution: str, address: str) -> tuple[str, Guest]:
        """Keeps the guest whose proof this is; the value of the cookie, and the guest. The proof is checked against the guests who
        are here by then. Raises ProofRefused, TooManyGuests, GuestsStale, Unavailable."""
        origin = self._origin(address)
        async with self._beginning:
            guest_id = await self._solved(challenge, solution, origin)
            guests = await self.guests()
            settings = self._settings
            return await guests.begin(guest_id, self._digest_of(origin), settings.guests_hours, settings.guests_tenant)

    async def admit(self, cookie: str) -> Admission:
        """Raises GuestGone, GuestsStale."""
        guests = await self.guests()
        guest = guests.find(cookie)

        async def ended() -> Unauthenticated:
            while (left_s := guest.ends_at - self._now()) > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(left_s, _RECHECK_S)):
                        await guests.wait_gone(guest)
                        break
            return GuestGone("your stay as a guest is over; begin another one, or sign in")

        return Admission(self.principal(guest), issuer=GUEST, given_at=guest.made_at, ended=ended)

    async def leave(self, cookie: str) -> Principal:
        """Ends the stay of the guest whose cookie is shown; says who it was. Raises GuestGone, Unavailable."""
        guests = await self.guests()
        guest = guests.find(cookie)
        await guests.leave(guest)
        return self.principal(guest)

    def principal(self, guest: Guest) -> Principal:
        """Who a guest is."""
        return guest.principal(self._settings.guests_tenant)

    async def guests(self) -> Guests:
        """All guests. A gateway that has just started lets a request wait for them. Raises GuestsStale."""
        if not self._is_open.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(FIRST_KEYS_S):
                    await self._is_open.wait()
        if self._guests is None or not self._is_open.is_set():
            raise GuestsStale("it is not known yet which guests are here; try again in a few seconds")
        return self._guests

    async def run(self, nats: Nats) -> None:
        """Follows the guests until cancelled."""
        complaints = FailureLogLimit()
        staleness_s = self._settings.api_keys_stale_after_s
        while self._guests is None:
            try:
                self._guests = await Guests.open(nats, self._now, staleness_s=staleness_s, clock=self._clock)
            except GroundworkError as error:
                if complaints.is_due():
                    _log.warning("guests_not_opened", error=error.message)
                await asyncio.sleep(_RETRY_S)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._guests.run())
            await self._guests.wait_confirmed()
            self._is_open.set()

    async def _solved(self, challenge: str, solution: str, origin: str) -> str:
        return self._puzzles.solved(challenge, solution, origin, await self._needed(origin))

    async def _needed(self, origin: str) -> int:
        """How hard a puzzle is now. Raises TooManyGuests, GuestsStale."""
        settings, guests = self._settings, await self.guests()
        of_address, here = guests.counts(self._digest_of(origin), settings.guests_hours)
        if here >= settings.guests_max:
            raise TooManyGuests(
                "there are as many guests as this installation takes; come back later", retry_after_s=600
            )
        if of_address >= settings.guests_per_address:
            raise TooManyGuests("there are many guests of your address already; come back later", retry_after_s=600)
        return needed_bits(settings.guests_proof_bits, of_address, here, settings.guests_max)

    def _counted(self, address: str) -> str:
        """The client's address or network, whose tries are counted; of a proxy none are. Raises TooManyWrongKeys."""
        origin = self._origin(address)
        if origin and (wait_s := self._tries.take(origin)):
            raise TooManyWrongKeys(
                "too many tries to become a guest came from your address; wait", retry_after_s=wait_s
            )
        return origin

    def _origin(self, address: str) -> str:
        """Empty for a proxy, behind which are many clients."""
        return origin_of(address, self._settings.proxies) or ""

    def _digest_of(self, origin: str) -> str:
        return self._puzzles.digest_of(origin) if origin else ""
