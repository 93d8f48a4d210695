"""Reads hostile addresses as sources do, in a network namespace that has nothing but loopback."""

from contextlib import AsyncExitStack

from kit.errors import GroundworkError
from kit.network.egress import EgressGuard
from services.ingest.adapters.source_http import source_http
from tests.service.tools.web.attacks import Read, main


async def _source(stack: AsyncExitStack, guard: EgressGuard) -> Read:
    async def read(url: str) -> str:
        try:
            async with source_http(guard) as http:
                return f"read from {(await http.text(url)).url.host}"
        except GroundworkError as error:
            return error.reason

    return read


if __name__ == "__main__":
    main(_source)
