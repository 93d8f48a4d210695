"""An OIDC issuer of the test's own: its keys are made here, so that it can sign what a real one never would."""

import json
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from jwt.algorithms import ECAlgorithm

from services.gateway.settings import GatewaySettings
from tests.service.gateway.conftest import Settings
from tests.service.tools.http_server import Asked, HttpServer, http_server, said


class Issuer:
    """Publishes the keys in `published`, and signs with any. `is_silent`: it answers nobody."""

    def __init__(self) -> None:
        self.keys: dict[str, EllipticCurvePrivateKey] = {}
        self.published: list[str] = []
        self.is_silent = False
        self.codes: dict[str, str] = {}
        """ID token by the code that gets it."""
        self.server = HttpServer(self._answer)
        self.add_key("first")

    @property
    def url(self) -> str:
        return self.server.url("").rstrip("/")

    def add_key(self, kid: str) -> None:
        self.keys[kid] = ec.generate_private_key(ec.SECP256R1())
        self.published.append(kid)

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Those of a good token; None takes one away."""
        now = int(time.time())
        claims = {"iss": self.url, "aud": "groundwork", "sub": "anna", "iat": now, "exp": now + 300, **changes}
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, kid: str = "first", **changes: Any) -> str:
        return jwt.encode(self.claims(**changes), self.keys[kid], "ES256", {"kid": kid})

    def logout_token(self, **changes: Any) -> str:
        events: dict[str, Any] = {"http://schemas.openid.net/event/backchannel-logout": {}}
        return self.token(**{"events": events, "sub": None, "jti": "1", **changes})

    def entry(self, **changes: Any) -> dict[str, Any]:
        """How an operator lists it."""
        groups = {"editors": ["query", "ingest"], "admins": ["admin"]}
        return {
            "issuer": self.url,
            "audiences": ["groundwork"],
            "tenant": "acme",
            "groups": groups,
            "everyone": ["query"],
            **changes,
        }

    def _answer(self, asked: Asked) -> bytes | None:
        if self.is_silent:
            return None
        if asked.target == "/.well-known/openid-configuration":
            ends = {
                "jwks_uri": "keys",
                "authorization_endpoint": "authorize",
                "token_endpoint": "token",
                "end_session_endpoint": "end",
            }
            metadata = {"issuer": self.url, **{name: f"{self.url}/{path}" for name, path in ends.items()}}
            return said(json.dumps(metadata), content_type="application/json")
        if asked.target == "/token":
            token = self.codes.pop(parse_qs(asked.body.decode())["code"][0], None)
            return said(json.dumps({"id_token": token}), status="200 OK" if token else "400 Bad Request")
        if asked.target == "/keys":
            return said(
                json.dumps({"keys": [self._public(kid) for kid in self.published]}), content_type="application/json"
            )
        return said("", status="404 Not Found")

    def _public(self, kid: str) -> dict[str, Any]:
        return {"kid": kid, "use": "sig", **ECAlgorithm.to_jwk(self.keys[kid].public_key(), as_dict=True)}

    @property
    def fetches(self) -> int:
        return sum(asked.target == "/keys" for asked in self.server.asked)


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    issuer = Issuer()
    async with http_server(issuer.server):
        yield issuer


@pytest.fixture
def issuers_file(tmp_path: Path) -> Path:
    return tmp_path / "issuers.json"


Listing = Callable[..., GatewaySettings]


@pytest.fixture
def listing(settings: Settings, nats_url: str, issuers_file: Path) -> Listing:
    """Settings of a gateway that lists these issuers."""

    def make(*entries: dict[str, Any], **changes: Any) -> GatewaySettings:
        issuers_file.write_text(json.dumps(entries))
        return settings(**{"auth": "api_keys", "nats_url": nats_url, "oidc_issuers_file": issuers_file, **changes})

    return make


@pytest.fixture
def settings_of_console(listing: Listing, issuer: Issuer) -> GatewaySettings:
    """Settings of a gateway at whose console people log in."""
    return listing(issuer.entry(client_id="console", name="Acme"))
