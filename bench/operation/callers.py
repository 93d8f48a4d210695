"""What it costs a gateway to know its caller: by a token of an OIDC issuer, by the cookie of a login and by an API key, in turn.
The issuer serves its keys on loopback; the message store is real."""

import asyncio
import json
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from pydantic import SecretStr
from starlette.datastructures import Headers

from bench.report import Figure, Part
from evals.samples import Samples
from evals.tables import Table
from kit.access.api_keys import new_key
from kit.access.principal import QUERY
from kit.jetstream import connect
from kit.stores.api_key_store import ApiKeyStore
from kit.testing.harness import public_keys_text, signing_key_text
from kit.testing.nats import nats_server
from services.gateway.access.auth import SESSION_COOKIE
from services.gateway.access.keys import Keys
from services.gateway.access.oidc.issuers import Issuers
from services.gateway.access.oidc.key_sets import KeySets
from services.gateway.access.oidc.tokens import TokenReader
from services.gateway.settings import GatewaySettings

CALLERS, ROUNDS = 100, 50
TARGET_MS = 0.3
_ADDRESS = "127.0.0.1"
_KEY = "API key"
_TOKEN = "token of an issuer, known"
_COOKIE = "cookie of a login, known"
_FIRST = {"RS256": "token of an issuer, shown for the first time, RS256", "ES256": "the same, ES256"}
Timed = dict[str, list[float]]


def measure() -> Part:
    """Milliseconds of a check, by what is shown."""
    timed = {shown: Samples.of(each) for shown, each in asyncio.run(_measure()).items()}
    token, key = timed[_TOKEN], timed[_KEY]
    return Part(
        title="Who the caller is",
        about=(
            f"The gateway's whole check of a caller, head of a request to principal, in process: {CALLERS} callers of each kind, "
            f"{ROUNDS} times in turn. A token that is known has been verified before: its signature is not computed again, and all "
            "else is looked up each time (its issuer, its key, its end, logouts, users who have left). Every token names 20 groups."
        ),
        figures=[
            Figure(
                "check of an OIDC token, known, ms",
                f"p50 {token.median:.3f}, p95 {token.p95:.3f}",
                f"p50 < {TARGET_MS}",
                token.median < TARGET_MS,
            ),
            Figure("the same ÷ check of an API key", f"{token.median / key.median:.2f}"),
        ],
        tables=(
            Table(
                ("", "p50, ms", "p95, ms"),
                [(shown, f"{each.median:.3f}", f"{each.p95:.3f}") for shown, each in timed.items()],
            ),
        ),
    )


async def _measure() -> Timed:
    with tempfile.TemporaryDirectory(prefix="groundwork-bench-") as folder, _issuer(Path(folder)) as (tokens, file):
        async with nats_server() as server:
            texts = await _make_keys(server.url)
            settings = GatewaySettings(
                auth="api_keys",
                nats_url=server.url,
                oidc_issuers_file=file,
                auth_signing_key=SecretStr(signing_key_text()),
                auth_public_keys=public_keys_text(),
            )
            async with _running(Keys(settings, now=lambda: datetime.now(UTC), clock=time.monotonic)) as keys:
                cookies = await _log_in(keys, file, tokens["ES256"])
                heads = {
                    _KEY: [{"authorization": f"Bearer {text}"} for text in texts],
                    _TOKEN: [{"authorization": f"Bearer {token}"} for token in tokens["ES256"]],
                    _COOKIE: [{"cookie": f"{SESSION_COOKIE}={cookie}"} for cookie in cookies],
                }
                first = {
                    name: await _timed(keys, [{"authorization": f"Bearer {token}"} for token in tokens[algorithm]])
                    for algorithm, name in _FIRST.items()
                }
                for each in heads.values():
                    await _timed(keys, each)
                timed: Timed = {name: [] for name in heads}
                for _ in range(ROUNDS):
                    for name, each in heads.items():
                        timed[name] += await _timed(keys, each)
                return timed | first


async def _timed(keys: Keys, heads: list[dict[str, str]]) -> list[float]:
    took = []
    for head in map(Headers, heads):
        began = time.perf_counter()
        await keys.door.admit(head, _ADDRESS)
        took.append(1000 * (time.perf_counter() - began))
    return took


@asynccontextmanager
async def _running(keys: Keys) -> AsyncIterator[Keys]:
    following = asyncio.create_task(keys.run())
    try:
        await keys.ring.wait_fresh()
        yield keys
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _make_keys(nats_url: str) -> list[str]:
    texts = []
    async with connect(nats_url, name="bench") as nats:
        store = await ApiKeyStore.open(nats)
        for number in range(CALLERS):
            key, text = new_key(
                name="bench",
                tenant_id="acme",
                subject=f"user-{number}",
                scopes=(QUERY,),
                created_at=datetime.now(UTC),
                created_by="bench",
            )
            await store.create(key)
            texts.append(text.get_secret_value())
    return texts


async def _log_in(keys: Keys, file: Path, tokens: list[str]) -> list[str]:
    assert keys.issuers is not None
    reader = TokenReader(Issuers(file), KeySets(time.monotonic))
    return [(await keys.issuers.begin_session(await reader.read(token)))[0] for token in tokens]


@contextmanager
def _issuer(folder: Path) -> Iterator[tuple[dict[str, list[str]], Path]]:
    """Tokens by their algorithm, and the file that lists their issuer."""
    site = folder / "issuer"
    (site / ".well-known").mkdir(parents=True)
    handler = partial(_Quiet, directory=str(site))
    with ThreadingHTTPServer((_ADDRESS, 0), handler) as server:
        url = f"http://{_ADDRESS}:{server.server_port}"
        signing: dict[str, RSAPrivateKey | ec.EllipticCurvePrivateKey] = {
            "ES256": ec.generate_private_key(ec.SECP256R1()),
            "RS256": rsa.generate_private_key(public_exponent=65537, key_size=2048),
        }
        published = [{"kid": kid, "use": "sig", **_public(key)} for kid, key in signing.items()]
        (site / ".well-known" / "openid-configuration").write_text(
            json.dumps({"issuer": url, "jwks_uri": f"{url}/keys"})
        )
        (site / "keys").write_text(json.dumps({"keys": published}))
        groups = [f"group-{number}" for number in range(20)]
        listed = {"issuer": url, "audiences": ["groundwork"], "tenant": "acme", "groups": {groups[0]: [QUERY]}}
        file = folder / "issuers.json"
        file.write_text(json.dumps([listed]))
        now = int(time.time())
        claims = {"iss": url, "aud": "groundwork", "iat": now, "exp": now + 3600, "groups": groups}
        tokens = {
            kid: [jwt.encode({**claims, "sub": f"{kid}-{number}"}, key, kid, {"kid": kid}) for number in range(CALLERS)]
            for kid, key in signing.items()
        }
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield tokens, file
        finally:
            server.shutdown()


def _public(key: RSAPrivateKey | ec.EllipticCurvePrivateKey) -> dict[str, Any]:
    if isinstance(key, RSAPrivateKey):
        return RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return ECAlgorithm.to_jwk(key.public_key(), as_dict=True)


class _Quiet(SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, *_: object) -> None:
        pass
