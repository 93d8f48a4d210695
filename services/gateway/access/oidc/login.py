"""Logging in by the browser: OAuth 2.0's authorization code with PKCE (RFC 7636), as OpenID Connect has it. What must be remembered
between leaving for the issuer and coming back is in a cookie of that browser, so that any gateway can go on, and nobody can have
another person's browser finish a login that is not theirs."""

import base64
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from urllib.parse import urlencode

from kit.errors import InvalidArgument, NotFound
from services.gateway.access.oidc.asking import FAILED, address_in, ask, client_of, metadata_of
from services.gateway.access.oidc.issuers import Issuer, Issuers
from services.gateway.access.oidc.key_sets import IssuerSilent
from services.gateway.access.oidc.tokens import TokenReader, Verified

CALLBACK = "/oidc/callback"
_OWN_PAGE = re.compile(r"/(?![/\\])[\x21-\x7e]*")
"""A page of this gateway: `//elsewhere` would be another's."""


class IssuerUnknown(NotFound):
    """Nobody logs in at this issuer."""

    reason = "ISSUER_UNKNOWN"


class LoginRefused(InvalidArgument):
    """The login did not come about."""

    reason = "LOGIN_REFUSED"


@dataclass(frozen=True)
class Leaving:
    """A login that was begun: what the browser's cookie remembers of it."""

    issuer: str
    state: str
    nonce: str
    verifier: str
    to: str
    """The page to come back to."""

    def encoded(self) -> str:
        """As a cookie's value."""
        return base64.urlsafe_b64encode(json.dumps(asdict(self)).encode()).decode()

    @classmethod
    def decoded(cls, text: str) -> "Leaving":
        """Raises LoginRefused."""
        try:
            leaving = cls(**json.loads(base64.urlsafe_b64decode(text)))
            if all(isinstance(each, str) and each for each in asdict(leaving).values()):
                return leaving
        except (ValueError, TypeError):
            pass
        raise LoginRefused("this login was not begun in this browser, or took longer than ten minutes; begin anew")


class Logins:
    """Logins at all issuers."""

    def __init__(self, issuers: Issuers, reader: TokenReader) -> None:
        self._issuers = issuers
        self._reader = reader

    def offered(self) -> Mapping[str, str]:
        """What people are shown of each issuer at which they can log in, by its address."""
        return {each.issuer: each.shown_name for each in self._issuers.all().values() if each.client_id}

    async def begin(self, issuer_address: str, base: str, to: str) -> tuple[str, Leaving]:
        """Where the browser goes, and what it remembers. `base` is this gateway's own address. Raises IssuerUnknown,
        IssuerSilent."""
        issuer = self._find_issuer(issuer_address)
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        leaving = Leaving(issuer.issuer, state, nonce, verifier, to if _OWN_PAGE.fullmatch(to) else "/")
        challenge = base64.urlsafe_b64encode(hashlib.sha256(leaving.verifier.encode()).digest()).decode().rstrip("=")
        parameters = {
            "response_type": "code",
            "client_id": issuer.client_id,
            "redirect_uri": base + CALLBACK,
            "scope": " ".join(issuer.login_scopes),
            "state": leaving.state,
            "nonce": leaving.nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        address = await self._address(issuer, "authorization_endpoint")
        return f"{address}{'&' if '?' in address else '?'}{urlencode(parameters)}", leaving

    async def finish(self, asked: Mapping[str, str], leaving: Leaving, base: str) -> Verified:
        """Who came back, with what the issuer gave their browser. Raises LoginRefused, IssuerUnknown, IssuerSilent,
        TokenRefused."""
        issuer = self._find_issuer(leaving.issuer)
        if (
            not hmac.compare_digest(asked.get("state", ""), leaving.state)
            or asked.get("iss", issuer.issuer) != issuer.issuer
        ):
            raise LoginRefused("this is the end of another login; begin anew")
        if "code" not in asked:
            said = asked.get("error_description") or asked.get("error") or "no reason"
            raise LoginRefused(f"{issuer.shown_name} did not let you in: {said[:300]}")
        code = {
            "grant_type": "authorization_code",
            "code": asked["code"],
            "redirect_uri": base + CALLBACK,
            "client_id": issuer.client_id,
            "code_verifier": leaving.verifier,
        }
        secret = issuer.client_secret()
        try:
            async with client_of(issuer) as client:
                address = address_in(await metadata_of(client, issuer), "token_endpoint", issuer)
                given = await ask(
                    client, "POST", address, data=code, auth=(issuer.client_id, secret) if secret else None
                )
        except FAILED as error:
            raise LoginRefused(f"{issuer.shown_name} gave no token for this login ({error}); begin anew") from error
        return await self._reader.read_login(issuer, str(given.get("id_token")), leaving.nonce)

    async def end_address(self, issuer_address: str, base: str) -> str:
        """Where the browser ends the login at the issuer too (OpenID Connect RP-Initiated Logout 1.0), and comes back from; empty
        where the issuer has no such page."""
        issuer = self._find_issuer(issuer_address)
        try:
            address = await self._address(issuer, "end_session_endpoint")
        except (IssuerSilent, IssuerUnknown):
            return ""
        return f"{address}?{urlencode({'client_id': issuer.client_id, 'post_logout_redirect_uri': base + '/'})}"

    def _find_issuer(self, issuer_address: str) -> Issuer:
        issuer = self._issuers.all().get(issuer_address)
        if issuer is None or not issuer.client_id:
            raise IssuerUnknown("nobody logs in there; /oidc/issuers lists where people can")
        return issuer

    async def _address(self, issuer: Issuer, name: str) -> str:
        try:
            async with client_of(issuer) as client:
                return address_in(await metadata_of(client, issuer), name, issuer)
        except FAILED as error:
            raise IssuerSilent(f"{issuer.shown_name} cannot be asked now ({error}); try again shortly") from error
