"""HTTP connections to endpoints that users bring: they go through the guard of kit.egress, and not through the environment's
proxies, which would look names up by themselves. Redirects are the client's affair: it must not follow any."""

import httpcore
import httpx

from kit.egress import EgressGuard, GuardedBackend


def guarded_transport(guard: EgressGuard) -> httpx.AsyncBaseTransport:
    """For one client, which closes it."""
    transport = httpx.AsyncHTTPTransport(trust_env=False)
    # httpx has no option for the network of its pool, as httpcore has. A test connects to what must be refused.
    transport._pool = httpcore.AsyncConnectionPool(
        ssl_context=httpx.create_ssl_context(trust_env=False),
        max_connections=None,
        network_backend=GuardedBackend(httpcore.AnyIOBackend(), guard),  # type: ignore[arg-type] # the same methods
    )
    return transport
