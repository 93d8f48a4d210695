"""The settings about guests."""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field

from kit.limits.rules import Limit, Per, What
from kit.process.settings import Identifier, ServiceSettings

_LIMIT = re.compile(r"([a-z_]+)=([0-9]+(?:\.[0-9]+)?)(?:/([a-z]+))?")


def limits_in(text: str) -> Sequence[Limit]:
    """The limits that a text names, as the command line writes them. Raises ValueError."""
    limits = []
    for each in text.split():
        matched = _LIMIT.fullmatch(each)
        try:
            limit = Limit(What(matched[1]), float(matched[2]), Per(matched[3] or Per.EVER)) if matched else None
        except ValueError:
            limit = None
        if limit is None or not limit.is_possible:
            raise ValueError(
                f"{each!r} is no limit; write it as `tokens=100000/day` or `storage=10000000000`, with spaces between several"
            )
        limits.append(limit)
    if not limits:
        raise ValueError("guests need a budget; write limits as `runs=30/day tokens=100000/day`")
    return limits


def _checked(text: str) -> str:
    limits_in(text)
    return text


class GuestSettings(ServiceSettings):
    """Whether people without an account are let in, and how many."""

    guests: bool = False
    """With `api_keys`: whether people without an account may come in for a while. docs/operations/guests.md says what
    they may do."""

    guests_tenant: Identifier = "guests"
    """Tenant of all guests, which should be nobody else's: its members see what the tenant shares. Guests read those of its
    collections that are shared with the tenant or with the group `guest`, and what they upload themselves."""

    guests_hours: float = Field(default=24.0, gt=0, le=24)
    """How long a guest may stay, in hours. Then all that the guest made is removed."""

    guests_max: int = Field(default=1000, ge=1, le=10_000)
    """Most guests at a time, over all gateways; one who leaves early counts for GROUNDWORK_GUESTS_HOURS. Each
    gateway has all of them in memory, about 1 KB each."""

    guests_per_address: int = Field(default=20, ge=1)
    """Most guests at a time from one address (IPv6: one /64 network). Addresses in GROUNDWORK_PROXIES are not counted."""

    guests_proof_bits: int = Field(default=18, ge=1, le=24)
    """Work that a browser does to become a guest: 2 to this power hashes on average; 18 takes a browser about a second. Guests of
    the same address, and many guests at all, make it up to 256 times as much."""

    guests_limits: Annotated[str, AfterValidator(_checked)] = (
        "requests=120/minute runs=30/day research_runs=1/day tokens=150000/day dollars=0.5/day tool_calls=60/day documents=10/day"
    )
    """What each guest may use, as a rule for `subject:*` of the guests' tenant. It is set when there is no such rule; set
    another by `groundwork limits set`, with a key of that tenant."""

    guests_limits_together: Annotated[str, AfterValidator(_checked)] = "dollars=20/day storage=10000000000"
    """What all guests together may use and store (bytes), as the rule for their tenant (`tenant:guests`). It is set when
    there is neither such a rule nor one for each tenant (`tenant:*`); set another by `groundwork limits set`, as an operator."""
