"""Who is let in by the tokens of an OIDC issuer, with a real message store behind the gateway."""

import asyncio
import base64
import hmac
import json
import random
import time
from collections.abc import Callable
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from kit.access.principal import ADMIN, INGEST, QUERY
from kit.errors import FailedPrecondition
from kit.jetstream import Nats
from kit.testing.nats import NatsServer
from services.gateway.access.keys import Keys
from services.gateway.settings import GatewaySettings
from tests.service.gateway.conftest import Clocks, World, in_process, over_http
from tests.service.gateway.key_desk import KeyDesk, bearer
from tests.service.gateway.oidc.conftest import Issuer, Listing
from tests.service.gateway.sse_reader import received

Make = Callable[[Issuer], str]
_DAY_S = 86_400
_OF_KEYS_NOT_STALE = {"api_keys_stale_after_s": 1e9}
"""For tests that set the clock forward."""


def refusal(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["reason"]


async def ask(client: httpx.AsyncClient, token: str) -> httpx.Response:
    return await client.get("/v1/me", headers=bearer(token))


async def test_the_caller_is_whom_the_token_names(listing: Listing, issuer: Issuer, jetstream: Nats) -> None:
    desk = await KeyDesk.open(jetstream)
    async with in_process(listing(issuer.entry(subject_prefix="sso|"))) as client:
        reader = (await ask(client, issuer.token())).json()
        editor = (await ask(client, issuer.token(groups=["staff", "editors"]))).json()
        by_key = (await ask(client, await desk.issue(QUERY, subject="olga"))).json()
    anna = {"tenant": "acme", "subject": "sso|anna"}
    assert reader == {**anna, "scopes": ["query"], "groups": []}
    assert editor == {**anna, "scopes": ["query", "ingest"], "groups": ["sso|editors", "sso|staff"]}
    assert by_key["subject"] == "olga"


async def test_services_behind_the_gateway_act_for_the_token_s_caller(
    listing: Listing, issuer: Issuer, world: World
) -> None:
    async with in_process(listing(issuer.entry())) as client:
        path, file = "/v1/collections/default/documents", {"file": ("a.txt", b"hello")}
        refused = await client.post(path, headers=bearer(issuer.token()), files=file)
        taken = await client.post(path, headers=bearer(issuer.token(groups="editors")), files=file)
    assert refusal(refused) == (403, "SCOPE_MISSING")
    assert taken.status_code == 202
    (caller,) = {(each.tenant_id, each.subject, each.scopes) for each in world.ingest.callers}
    assert caller == ("acme", "anna", frozenset({QUERY, INGEST}))


async def test_tenant_roles_and_scopes_come_from_the_claims_that_the_operator_names(
    listing: Listing, issuer: Issuer
) -> None:
    entry = issuer.entry(
        tenant_claim="org",
        tenants={"org_1": "one", "org_2": "two"},
        group_claims=["realm_access.roles", "scope"],
        groups={"rag.admin": ["admin"], "search": ["query"]},
        everyone=[],
    )
    async with in_process(listing(entry)) as client:
        admin = (await ask(client, issuer.token(org="org_2", realm_access={"roles": ["rag.admin"]}))).json()
        service = (await ask(client, issuer.token(org="org_1", sub="crawler", scope="openid search"))).json()
        nobody = await ask(client, issuer.token(org="org_3", scope="search"))
        powerless = await client.get("/v1/runs", headers=bearer(issuer.token(org="org_1")))
    assert (admin["tenant"], admin["scopes"]) == ("two", [QUERY, INGEST, ADMIN])
    assert service == {"tenant": "one", "subject": "crawler", "scopes": ["query"], "groups": ["openid", "search"]}
    assert refusal(nobody) == (401, "TOKEN_INVALID")
    assert refusal(powerless) == (403, "SCOPE_MISSING")


def _signed(issuer: Issuer, key: Any, algorithm: str, **header: Any) -> str:
    return jwt.encode(issuer.claims(), key, algorithm, {"kid": "first", **header})


def _by_public_key(issuer: Issuer) -> str:
    """Signed with a secret that everybody knows: the public key."""
    public = issuer.keys["first"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    said = f"{_encoded({'alg': 'HS256', 'kid': 'first'})}.{_encoded(issuer.claims(staff='yes'))}"
    signature = hmac.digest(public, said.encode(), "sha256")
    return f"{said}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def _with_issuers(issuer: Issuer) -> str:
    """Of a list of issuers, which no issuer would sign."""
    head, _, signature = issuer.token().split(".")
    return ".".join([head, _encoded({**issuer.claims(), "iss": [issuer.url]}), signature])


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        pytest.param(lambda issuer: issuer.token(aud="another"), "TOKEN_INVALID", id="for others"),
        pytest.param(lambda issuer: issuer.token(aud=None), "TOKEN_INVALID", id="for nobody"),
        pytest.param(
            lambda issuer: issuer.token(iss="https://elsewhere.example"), "TOKEN_INVALID", id="another issuer"
        ),
        pytest.param(lambda issuer: issuer.token(iss=None), "TOKEN_INVALID", id="no issuer"),
        pytest.param(_with_issuers, "TOKEN_INVALID", id="a list of issuers"),
        pytest.param(lambda issuer: issuer.token(exp=int(time.time()) - 61), "TOKEN_EXPIRED", id="expired"),
        pytest.param(lambda issuer: issuer.token(exp=None), "TOKEN_INVALID", id="never expires"),
        pytest.param(lambda issuer: issuer.token(iat=None), "TOKEN_INVALID", id="does not say its age"),
        pytest.param(
            lambda issuer: issuer.token(staff="yes", iat=int(time.time()) - _DAY_S - 600),
            "TOKEN_EXPIRED",
            id="older than a day",
        ),
        pytest.param(lambda issuer: issuer.token(nbf=int(time.time()) + 90), "TOKEN_INVALID", id="not yet"),
        pytest.param(lambda issuer: issuer.token(sub=None), "TOKEN_INVALID", id="of nobody"),
        pytest.param(lambda issuer: issuer.token(sub="a b*"), "TOKEN_INVALID", id="no name of a caller"),
        pytest.param(lambda issuer: issuer.token(staff="no"), "TOKEN_INVALID", id="not a required value"),
        pytest.param(lambda issuer: issuer.token(staff=None), "TOKEN_INVALID", id="without a required claim"),
        pytest.param(lambda issuer: issuer.logout_token(staff="yes", sub="anna"), "TOKEN_INVALID", id="about a logout"),
        pytest.param(
            lambda issuer: _signed(issuer, ec.generate_private_key(ec.SECP256R1()), "ES256"),
            "TOKEN_INVALID",
            id="forged",
        ),
        pytest.param(_by_public_key, "TOKEN_INVALID", id="signed with the public key"),
        pytest.param(lambda issuer: _signed(issuer, None, "none"), "TOKEN_INVALID", id="not signed"),
        pytest.param(
            lambda issuer: _signed(issuer, issuer.keys["first"], "ES256", crit=["exp"]), "TOKEN_INVALID", id="crit"
        ),
        pytest.param(
            lambda issuer: _signed(issuer, issuer.keys["first"], "ES256", kid="other"), "TOKEN_INVALID", id="kid"
        ),
        pytest.param(lambda issuer: issuer.token()[:-4], "TOKEN_INVALID", id="cut"),
        pytest.param(lambda _: "eyJ.." + "a" * 20_000, "TOKEN_INVALID", id="huge"),
    ],
)
async def test_what_is_no_good_token_lets_nobody_in(listing: Listing, issuer: Issuer, make: Make, reason: str) -> None:
    async with in_process(listing(issuer.entry(require={"staff": "yes"}))) as client:
        assert (await ask(client, issuer.token(staff="yes"))).status_code == 200
        answer = await ask(client, make(issuer))
    assert refusal(answer) == (401, reason)
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert answer.json()["detail"]


async def test_of_crafted_tokens_none_lets_anybody_in_and_none_breaks_anything(
    listing: Listing, issuer: Issuer
) -> None:
    rng = random.Random(38)
    good = issuer.token()
    async with in_process(listing(issuer.entry(), wrong_api_keys_per_minute=100_000)) as client:
        statuses = [(await ask(client, _crafted(good, rng))).status_code for _ in range(2000)]
        assert (await ask(client, good)).status_code == 200
    assert set(statuses) <= {400, 401}


def _crafted(good: str, rng: random.Random) -> str:
    """A good token with a few characters changed, a part replaced, or claims that are no claims."""
    parts = good.split(".")
    way, part = rng.randrange(4), rng.randrange(3)
    if way == 0:
        text = list(parts[part][:-1])  # the last character has bits that say nothing
        place = rng.randrange(len(text))
        text[place] = rng.choice([each for each in "abcXYZ019-_" if each != text[place]])
        parts[part] = "".join(text) + parts[part][-1]
    elif way == 1:
        parts[part] = _encoded(
            rng.choice([{}, [], None, 1, {"alg": "none"}, {"iss": {}}, {"exp": 1e999}, "x", [[]] * 50])
        )
    elif way == 2:
        parts = rng.choice(
            [["eyJ", "", ""], ["ey" * 2000, "a", "b"], [parts[0], parts[1], ""], ["e", *parts[1:]], parts[::-1]]
        )
    else:
        head = json.loads(base64.urlsafe_b64decode(parts[0] + "=="))
        head[rng.choice(["alg", "kid", "typ", "crit", "b64", "zip"])] = rng.choice(
            [None, 1, [], {}, "ES512", "HS256", "\0"]
        )
        parts[0] = _encoded(head)
        parts[2] = parts[2] if "alg" not in head else _encoded("forged")
    return ".".join(parts)


def _encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


async def test_keys_change_in_the_middle_of_traffic(listing: Listing, issuer: Issuer) -> None:
    clocks = Clocks()
    async with in_process(listing(issuer.entry(), **_OF_KEYS_NOT_STALE), clocks=clocks) as client:
        old = issuer.token()
        assert (await ask(client, old)).status_code == 200
        issuer.add_key("second")
        clocks.seconds += 10
        answers = await asyncio.gather(
            *(ask(client, issuer.token("second", n=each)) for each in range(20)), ask(client, old)
        )
        assert {answer.status_code for answer in answers} == {200}
        assert issuer.fetches == 2
        issuer.published.remove("first")
        clocks.seconds += 3601
        async with asyncio.timeout(60):
            while (answer := await ask(client, old)).status_code == 200:  # the keys are fetched behind a request's back
                await asyncio.sleep(0.01)
        assert refusal(answer) == (401, "TOKEN_INVALID")
        assert (await ask(client, issuer.token("second"))).status_code == 200


async def test_while_the_issuer_is_silent_its_known_keys_hold_for_a_day(
    listing: Listing, issuer: Issuer, jetstream: Nats
) -> None:
    clocks, desk = Clocks(), await KeyDesk.open(jetstream)
    issuer.is_silent = True
    async with in_process(listing(issuer.entry(), **_OF_KEYS_NOT_STALE), clocks=clocks) as client:
        assert refusal(await ask(client, issuer.token())) == (503, "ISSUER_UNAVAILABLE")
        assert (await ask(client, await desk.issue(QUERY))).status_code == 200
        issuer.is_silent = False
        clocks.seconds += 2
        assert (await ask(client, issuer.token())).status_code == 200
        issuer.is_silent = True
        clocks.seconds += 23 * 3600
        assert (await ask(client, issuer.token())).status_code == 200
        issuer.add_key("second")
        assert refusal(await ask(client, issuer.token("second"))) == (503, "ISSUER_UNAVAILABLE")


async def test_nobody_is_let_in_while_it_is_not_known_who_was_logged_out(
    listing: Listing, issuer: Issuer, nats: NatsServer
) -> None:
    clocks = Clocks()
    async with in_process(listing(issuer.entry()), clocks=clocks) as client:
        assert (await ask(client, issuer.token())).status_code == 200
        await nats.stop()
        clocks.seconds += 31
        assert refusal(await ask(client, issuer.token())) == (503, "API_KEYS_UNKNOWN")


async def log_out(client: httpx.AsyncClient, token: str) -> httpx.Response:
    return await client.post("/oidc/backchannel-logout", data={"logout_token": token})


@pytest.mark.parametrize("named", [{"sid": "s1"}, {"sub": "anna"}], ids=["the session", "the person"])
async def test_a_logout_at_the_issuer_ends_tokens_and_streams_at_every_gateway(
    listing: Listing, issuer: Issuer, named: dict[str, str]
) -> None:
    settings = listing(issuer.entry())
    token, other = issuer.token(sid="s1"), issuer.token(sub="bert", sid="s2")
    async with (
        in_process(settings) as here,
        over_http(settings) as there,
        there.stream("GET", "/v1/events", headers=bearer(token)) as stream,
    ):
        events = received(stream)
        seen = [await anext(events)]
        assert (await ask(here, token)).status_code == 200
        assert (await log_out(here, issuer.logout_token(**named))).status_code == 200
        assert refusal(await ask(here, token)) == (401, "TOKEN_REVOKED")
        async with asyncio.timeout(60):
            seen += [event async for event in events]
        assert (seen[-1].event, seen[-1].data["reason"]) == ("error", "TOKEN_REVOKED")
        assert refusal(await ask(there, token)) == (401, "TOKEN_REVOKED")
        assert (await ask(there, other)).status_code == 200
        again = issuer.token(sid="s3", iat=int(time.time()) + 2)
        assert (await ask(here, again)).status_code == 200


async def test_what_is_no_logout_token_logs_nobody_out(listing: Listing, issuer: Issuer) -> None:
    token = issuer.token(sid="s1")
    wrong = [
        token,
        "nothing",
        issuer.logout_token(),
        issuer.logout_token(sub="anna", nonce="n"),
        issuer.logout_token(sub="anna", aud="others"),
        issuer.logout_token(sub="anna", events={}),
    ]
    async with in_process(listing(issuer.entry())) as client:
        assert {refusal(await log_out(client, each)) for each in wrong} == {(400, "VALIDATION_FAILED")}
        as_json = await client.post("/oidc/backchannel-logout", json={"logout_token": issuer.logout_token(sub="anna")})
        assert refusal(as_json) == (415, "UNSUPPORTED_CONTENT_TYPE")
        assert (await ask(client, token)).status_code == 200


async def test_without_issuers_a_token_is_no_key_and_nobody_can_be_logged_out(listing: Listing, issuer: Issuer) -> None:
    async with in_process(listing(oidc_issuers_file=None)) as client:
        assert refusal(await ask(client, issuer.token())) == (401, "API_KEY_MALFORMED")
        assert refusal(await log_out(client, issuer.logout_token(sub="anna"))) == (404, "ROUTE_NOT_FOUND")


async def test_a_stream_ends_with_its_token(listing: Listing, issuer: Issuer) -> None:
    clocks = Clocks()
    now = int(clocks.day.timestamp())
    async with (
        over_http(listing(issuer.entry(clock_skew_s=0)), clocks=clocks) as client,
        client.stream("GET", "/v1/events", headers=bearer(issuer.token(iat=now, exp=now + 2))) as stream,
    ):
        events = received(stream)
        seen = [await anext(events)]
        clocks.day = clocks.day.replace(year=clocks.day.year + 1)
        async with asyncio.timeout(60):
            seen += [event async for event in events]
    assert (seen[-1].event, seen[-1].data["reason"]) == ("error", "TOKEN_EXPIRED")


async def test_listed_issuers_change_without_a_restart_and_mcp_clients_are_told_of_them(
    listing: Listing, issuer: Issuer
) -> None:
    metadata = "/.well-known/oauth-protected-resource"
    async with in_process(listing(issuer.entry())) as client:
        token = issuer.token(groups=["editors"])
        assert (await ask(client, token)).json()["scopes"] == ["query", "ingest"]
        assert (await client.get(metadata)).json()["authorization_servers"] == [issuer.url]
        listing(issuer.entry(groups={}))
        async with asyncio.timeout(60):
            while (await ask(client, token)).json()["scopes"] != ["query"]:
                await asyncio.sleep(0.05)


def _keys(settings: GatewaySettings) -> Keys:
    return Keys(settings, now=Clocks().now, clock=Clocks().clock)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"issuer": "http://sso.example.com"}, "https://"),
        ({"audiences": []}, "audiences"),
        ({"algorithms": ["HS256"]}, "algorithms"),
        ({"everyone": [], "groups": {}}, "nobody would have a scope"),
        ({"everyone": ["owner"]}, "everyone"),
        ({"tenant_claim": "org"}, "belong together"),
        ({"tenant": "Acme!"}, "tenant"),
        ({"audience": ["groundwork"]}, "audience"),
        ({"ca_file": "/nowhere.pem"}, "a file that"),
        ({"client_secret_file": "/nowhere"}, "a file that"),
    ],
)
def test_an_issuer_that_cannot_be_used_is_refused_at_the_start_and_says_why(
    listing: Listing, changes: dict[str, Any], said: str
) -> None:
    entry = {"issuer": "https://sso.example.com", "audiences": ["groundwork"], "everyone": ["query"], **changes}
    with pytest.raises(FailedPrecondition, match=said) as refused:
        _keys(listing(entry))
    assert "GROUNDWORK_OIDC_ISSUERS_FILE" in refused.value.message


@pytest.mark.parametrize(
    ("prefixes", "tenants", "is_refused"),
    [
        (("", ""), ("acme", "acme"), True),
        (("", "b|"), ("acme", "acme"), True),
        (("b|", "b|c|"), ("acme", "acme"), True),
        (("a|", "b|"), ("acme", "acme"), False),
        (("", ""), ("acme", "other"), False),
    ],
)
def test_two_issuers_cannot_mean_two_people_by_one_name(
    listing: Listing, prefixes: tuple[str, str], tenants: tuple[str, str], *, is_refused: bool
) -> None:
    entries = [
        {
            "issuer": f"https://{name}.example.com",
            "audiences": ["groundwork"],
            "everyone": ["query"],
            "subject_prefix": prefix,
            "tenant": tenant,
        }
        for name, prefix, tenant in zip(("one", "two"), prefixes, tenants, strict=True)
    ]
    if is_refused:
        with pytest.raises(FailedPrecondition, match="subject_prefix"):
            _keys(listing(*entries))
    else:
        _keys(listing(*entries))


def test_issuers_are_of_gateways_that_ask_for_a_credential(listing: Listing, issuer: Issuer) -> None:
    with pytest.raises(ValueError, match="GROUNDWORK_AUTH=api_keys"):
        listing(issuer.entry(), auth="none")
