"""With which keys a process works, as numbers: an operator who gives keys to many processes sees by them which have taken them
over."""

import hashlib
from collections.abc import Iterable, Mapping

from prometheus_client import Gauge

from kit.access.keys import KeySource, PublicKey, SigningKey

METRIC = "groundwork_keys_fingerprint"
PUBLIC, SIGNING = "public", "signing"
_DIGITS = 12
"""Hexadecimal ones: 48 bits, which a number of a metric holds exactly."""
_FINGERPRINT = Gauge(
    METRIC, "Beginning of the SHA-256 of the ids of the keys in use, public ones or the signing one.", ["keys"]
)


def fingerprint(kids: Iterable[str]) -> int:
    """Of the keys with these ids, in any order."""
    return int(hashlib.sha256("\n".join(sorted(kids)).encode()).hexdigest()[:_DIGITS], 16)


def show_keys(public: KeySource[Mapping[str, PublicKey]], signing: KeySource[SigningKey] | None) -> None:
    """Read when the metric is: a process that nobody calls has taken over what its files hold as well."""
    _FINGERPRINT.labels(PUBLIC).set_function(lambda: fingerprint(public.current()))
    if signing is not None:
        _FINGERPRINT.labels(SIGNING).set_function(lambda: fingerprint([signing.current().kid]))
