"""The public keys of issuers (RFC 7517), fetched from where their metadata say, kept for an hour, and asked for anew at once when a
token names a key that is not among them: so issuers change keys in the middle of traffic."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import jwt
import structlog

from kit.errors import Unavailable
from services.gateway.access.oidc.asking import FAILED, Unusable, address_in, ask, client_of, metadata_of
from services.gateway.access.oidc.issuers import Issuer
from services.gateway.metrics import ISSUER_FETCHES

_log = structlog.get_logger()
_FRESH_S = 3600.0
_GOOD_FOR_S = 86_400.0
"""Keys that could not be fetched again for a day are none: the issuer may have withdrawn them."""
_APART_S = 1.0
"""Between two tries, so that tokens with made-up key ids do not have us ask for each."""
_MOST_KEYS = 100


class IssuerSilent(Unavailable):
    """The issuer's keys cannot be fetched, so nobody with its tokens can be let in."""

    reason = "ISSUER_UNAVAILABLE"


@dataclass
class KeySet:
    """The keys of one issuer."""

    keys: Mapping[str, jwt.PyJWK] = field(default_factory=dict)
    """By key id."""
    fetched_at: float = float("-inf")
    tried_at: float = float("-inf")
    trouble: str = ""
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class KeySets:
    """The keys of all issuers. `clock` counts seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sets: dict[tuple[object, ...], KeySet] = {}
        self._refreshing: set[asyncio.Task[None]] = set()

    async def find(self, issuer: Issuer, kid: str) -> jwt.PyJWK | None:
        """The issuer's key of this id; None when it has none. Raises IssuerSilent when that cannot be known."""
        known = self._key_set_of(issuer)
        age_s = self._clock() - known.fetched_at
        if age_s > _GOOD_FOR_S or kid not in known.keys:
            await self._refresh(issuer, known)
        elif age_s > _FRESH_S and not known.turn.locked():
            task = asyncio.create_task(self._refresh(issuer, known))
            self._refreshing.add(task)
            task.add_done_callback(self._refreshing.discard)
        if self._clock() - known.fetched_at > _GOOD_FOR_S or (kid not in known.keys and known.trouble):
            raise IssuerSilent(
                f"the keys of {issuer.issuer} cannot be fetched now ({known.trouble}), so its tokens cannot be checked; try again "
                "shortly"
            )
        return known.keys.get(kid)

    async def read_first(self, issuer: Issuer) -> None:
        """Fetches keys that were never fetched. What goes wrong is logged."""
        known = self._key_set_of(issuer)
        if known.fetched_at == float("-inf"):
            await self._refresh(issuer, known)

    def _key_set_of(self, issuer: Issuer) -> KeySet:
        return self._sets.setdefault((issuer.issuer, issuer.jwks_uri, issuer.ca_file), KeySet())

    async def _refresh(self, issuer: Issuer, known: KeySet) -> None:
        asked_at = self._clock()
        async with known.turn:
            if known.tried_at >= asked_at:
                return  # another request did, while this one waited
            await asyncio.sleep(known.tried_at + _APART_S - self._clock())
            known.tried_at = self._clock()
            try:
                known.keys = await _fetched(issuer)
            except FAILED as error:
                known.trouble = str(error) or type(error).__name__
                ISSUER_FETCHES.labels("failed").inc()
                _log.warning("issuer_keys_not_fetched", issuer=issuer.issuer, error=known.trouble)
            else:
                known.fetched_at, known.trouble = self._clock(), ""
                ISSUER_FETCHES.labels("fetched").inc()
                _log.info("issuer_keys_fetched", issuer=issuer.issuer, keys=len(known.keys))


async def _fetched(issuer: Issuer) -> Mapping[str, jwt.PyJWK]:
    """Raises one of FAILED."""
    async with client_of(issuer) as client:
        address = issuer.jwks_uri or address_in(await metadata_of(client, issuer), "jwks_uri", issuer)
        entries = (await ask(client, "GET", address)).get("keys")
    if not isinstance(entries, list):
        raise Unusable(f"{address} is no JSON Web Key Set")
    keys = {}
    for entry in entries[:_MOST_KEYS]:
        try:
            key = jwt.PyJWK(entry)
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError):
            continue  # of a kind that we do not know, perhaps; the others stand
        if key.key_id and entry.get("use", "sig") == "sig" and key.key_type != "oct":
            keys[key.key_id] = key
    if not keys:
        raise Unusable(f"{address} has no key with an id that verifies tokens")
    return keys
