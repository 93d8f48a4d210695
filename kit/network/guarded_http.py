"""HTTP connections to endpoints that users bring. They go through the guard of kit.network.egress, not through the proxies of the
environment, which would resolve names themselves. The client must not follow redirects."""

import httpcore
import httpx

from kit.network.egress import EgressGuard, GuardedBackend


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
