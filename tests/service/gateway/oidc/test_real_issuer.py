"""Tokens of a certified OpenID provider (oidc-provider of npm), whose keys change in the middle of traffic."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from kit.testing.harness import free_port
from tests import from_npm
from tests.service.gateway.conftest import Clocks, in_process
from tests.service.gateway.key_desk import bearer
from tests.service.gateway.oidc.conftest import Listing
from tests.service.gateway.oidc.test_login import LEAVING, SESSION, cookies_of, shows


@pytest.fixture(scope="module")
def installed() -> Path:
    """The provider with its packages, installed once."""
    return from_npm.installed(Path(__file__).with_name("real_issuer"))


class RealClocks(Clocks):
    def now(self) -> datetime:
        return datetime.now(UTC)

    def clock(self) -> float:
        return time.monotonic()


def new_key(kid: str) -> dict[str, Any]:
    key = RSAAlgorithm.to_jwk(rsa.generate_private_key(65537, 2048), as_dict=True)
    return {**key, "kid": kid, "use": "sig", "alg": "RS256", "key_ops": None}


@asynccontextmanager
async def provider(
    installed: Path, port: int, keys: list[dict[str, Any]], folder: Path
) -> AsyncIterator[httpx.AsyncClient]:
    """Running; signs with the first key."""
    file = folder / "keys.json"
    file.write_text(json.dumps([{name: part for name, part in key.items() if part is not None} for key in keys]))
    process = await asyncio.create_subprocess_exec(
        *("node", "issuer.js", str(port), str(file)), cwd=installed, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60), httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
            while (await process.stdout.readline()).strip() != b"ready":
                assert process.returncode is None
            yield client
    finally:
        process.kill()
        await process.wait()


async def token_of(client: httpx.AsyncClient, scope: str) -> str:
    answer = await client.post(
        "/token", data={"grant_type": "client_credentials", "scope": scope}, auth=("crawler", "s3cret")
    )
    assert answer.status_code == 200, answer.text
    return str(answer.json()["access_token"])


async def test_a_service_account_comes_in_before_and_after_the_keys_were_changed(
    installed: Path, listing: Listing, tmp_path: Path
) -> None:
    port, old, new = free_port(), new_key("old"), new_key("new")
    entry = {
        "issuer": f"http://127.0.0.1:{port}",
        "audiences": ["groundwork"],
        "subject_claim": "client_id",
        "group_claims": ["scope"],
        "groups": {"query": ["query"], "ingest": ["ingest"]},
    }
    async with in_process(listing(entry), clocks=RealClocks()) as gateway:

        async def me(token: str) -> tuple[int, Any]:
            answer = await gateway.get("/v1/me", headers=bearer(token))
            return answer.status_code, answer.json().get("scopes", answer.json().get("reason"))

        async with provider(installed, port, [old], tmp_path) as issuer:
            reading, writing = await token_of(issuer, "query"), await token_of(issuer, "query ingest")
            assert await me(reading) == (200, ["query"])
            assert await me(writing) == (200, ["query", "ingest"])
            assert await me(writing[:-3] + "abc") == (401, "TOKEN_INVALID")
        async with provider(installed, port, [new, old], tmp_path) as issuer:
            assert await me(await token_of(issuer, "query")) == (200, ["query"])
            assert await me(reading) == (200, ["query"])
        async with provider(installed, port, [new], tmp_path) as issuer:
            assert await me(await token_of(issuer, "ingest")) == (200, ["ingest"])


async def test_a_person_logs_in_with_their_password_at_the_issuer(
    installed: Path, listing: Listing, tmp_path: Path
) -> None:
    port, secret = free_port(), tmp_path / "secret"
    secret.write_text("s3cret too\n")
    entry = {
        "issuer": f"http://127.0.0.1:{port}",
        "audiences": ["groundwork"],
        "everyone": ["query"],
        "client_id": "console",
        "client_secret_file": str(secret),
    }
    async with (
        provider(installed, port, [new_key("k")], tmp_path) as issuer,
        in_process(listing(entry), clocks=RealClocks()) as gateway,
    ):
        left = await gateway.get("/oidc/login", params={"issuer": entry["issuer"]})
        back = await _typed_in(issuer, left.headers["location"])
        leaving = cookies_of(left)[LEAVING].value
        come = await gateway.get(back, headers=shows(leaving=leaving))
        assert come.status_code == 303, come.text
        session = shows(session=cookies_of(come)[SESSION].value)
        assert (await gateway.get("/v1/me", headers=session)).json()["subject"] == "anna"
        again = await gateway.get(back, headers=shows(leaving=leaving))  # a code is good once
        assert again.status_code == 400


async def _typed_in(issuer: httpx.AsyncClient, address: str) -> str:
    """Follows the issuer's pages as a person does; returns where it sends the browser in the end."""
    answer = await issuer.get(address)
    while True:
        while answer.is_redirect:
            address = answer.headers["location"]
            if "/oidc/callback" in address:
                return address
            answer = await issuer.get(address)
        action, prompt = (
            re.search(r'action="([^"]+)"', answer.text),
            re.search(r'name="prompt" value="(\w+)"', answer.text),
        )
        assert action, answer.text
        assert prompt, answer.text
        fields = {"prompt": prompt[1], "login": "anna", "password": "any"}
        answer = await issuer.post(action[1], data=fields)
