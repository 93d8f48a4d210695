"""What issuers are asked for: JSON objects of bounded size, by an address that the operator vouches for."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from services.gateway.access.oidc.issuers import Issuer

_TIMEOUT_S = 5.0
_LARGEST_BYTES = 512 * 1024


class Unusable(Exception):
    """What the issuer answers is not what it should be."""


FAILED = (httpx.HTTPError, OSError, ValueError, Unusable)
"""What may go wrong with an issuer."""


@asynccontextmanager
async def client_of(issuer: Issuer) -> AsyncIterator[httpx.AsyncClient]:
    """Asks the issuer. Raises OSError for a ca_file that cannot be used."""
    async with httpx.AsyncClient(verify=issuer.tls(), timeout=_TIMEOUT_S, trust_env=False) as client:
        yield client


async def metadata_of(client: httpx.AsyncClient, issuer: Issuer) -> Mapping[str, Any]:
    """What the issuer publishes of itself (OpenID Connect Discovery 1.0). Raises one of FAILED."""
    metadata = await ask(client, "GET", issuer.issuer.rstrip("/") + "/.well-known/openid-configuration")
    if metadata.get("issuer") != issuer.issuer:
        raise Unusable(f"its metadata are those of {str(metadata.get('issuer'))[:200]!r}")
    return metadata


def address_in(metadata: Mapping[str, Any], name: str, issuer: Issuer) -> str:
    """An address that the metadata name. Raises Unusable unless it is reached as safely as the issuer itself."""
    address = metadata.get(name)
    if not isinstance(address, str) or address.partition(":")[0] != issuer.issuer.partition(":")[0]:
        raise Unusable(f"its metadata name no address {name!r} that is reached as safely as itself")
    return address


async def ask(client: httpx.AsyncClient, method: str, address: str, **options: Any) -> Mapping[str, Any]:
    """The JSON object there. Raises one of FAILED."""
    async with client.stream(method, address, headers={"Accept": "application/json"}, **options) as answer:
        body = bytearray()
        async for piece in answer.aiter_bytes():
            body += piece
            if len(body) > _LARGEST_BYTES:
                raise Unusable(f"{address} answers more than {_LARGEST_BYTES} bytes")
    if answer.status_code != httpx.codes.OK:  # a redirect is none: whose answer would it be?
        raise Unusable(f"{address} answers {answer.status_code}")
    found = httpx.Response(200, content=bytes(body)).json()
    if not isinstance(found, dict):
        raise Unusable(f"{address} is no JSON object")
    return found
