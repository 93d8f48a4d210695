"""Asking a search engine over the network again: a few times, with growing random pauses, and only while there is time.

Every request of the server adapters may be repeated without harm: points and documents are written under ids of their own,
deletions name what is to go, and reads change nothing.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

from kit.deadline import remaining_s

T = TypeVar("T")


@dataclass(frozen=True)
class RetryPolicy:
    """How often a call is made in all, and how long the pauses between are at most: `first_wait_s`, then twice that, …"""

    attempts: int
    first_wait_s: float
    longest_wait_s: float = 5.0

    def wait_s(self, failures: int, asked_for_s: float | None) -> float:
        """Seconds to pause after this many failures: random, so that clients do not come back all at once ("full jitter",
        AWS Architecture Blog 2015), and no less than the server asked for."""
        longest = min(self.longest_wait_s, self.first_wait_s * 2 ** (failures - 1))
        return max(random.uniform(longest / 2, longest), asked_for_s or 0.0)  # noqa: S311 - no secret


OPEN_TIMEOUT_S = 10.0
"""How long a start may wait for a server: a host that swallows packets must not keep the other engine from serving."""
READ = RetryPolicy(attempts=2, first_wait_s=0.05)
"""One more try covers a connection that the server closed while it was idle; a search that waits for more is of no use."""
WRITE = RetryPolicy(attempts=5, first_wait_s=0.25)
"""About four seconds of pauses: a leader election, a rolling restart of one node, a full write queue."""


async def retried(
    call: Callable[[], Awaitable[T]], policy: RetryPolicy, retry_after_s: Callable[[Exception], float | None]
) -> T:
    """The call's result. `retry_after_s` says of a failure how long the server wants to be left alone (0: not said), or None
    when asking again cannot help. Raises the last failure: when it is final, the attempts are used up, or the pause would
    outlast the request in hand."""
    failures = 0
    while True:
        try:
            return await call()
        except Exception as error:
            asked_for_s = retry_after_s(error)
            failures += 1
            if asked_for_s is None or failures >= policy.attempts:
                raise
            wait_s = policy.wait_s(failures, asked_for_s)
            left_s = remaining_s()
            if left_s is not None and wait_s >= left_s:
                raise
        await asyncio.sleep(wait_s)


def shown(url: str) -> str:
    """An address as a message may show it: a user and a password may stand in front of its host."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def too_slow(server: str, cause: Exception) -> str:
    """What to say of a server that takes connections and does not answer in time."""
    return (
        f"{server} did not answer in time ({type(cause).__name__}); it may be overloaded, paused or starting: try again, and if "
        "that goes on look at its load and its log"
    )


def cure(cause: str, engine: str) -> str:
    """What to do about a server that cannot be reached; `engine` as in the settings' names."""
    if "CERTIFICATE_VERIFY_FAILED" in cause:
        return f"set GROUNDWORK_{engine}_CA_FILE to the certificates of the authority that signed the server's"
    return f"check that it runs and that GROUNDWORK_{engine}_URL is its address"
