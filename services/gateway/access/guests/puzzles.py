"""Proof of work for guests: a number whose hash begins with zero bits, for a text that this installation has signed. Nothing is
stored for a puzzle that is given out; any gateway checks it, since all of them have the same signing key."""

import hashlib
import hmac
import math
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from kit.access.keys import KeySource, SigningKey
from kit.errors import InvalidArgument

LIVES_S = 300
"""A phone solves the hardest puzzle in less; what was solved in advance is soon of no use."""
_LOAD_BITS = 4
_ADDED_BITS = 8
"""Most that the guests who are here add: the hardest takes minutes, and must not take hours."""
_GRACE_BITS = 2
"""A puzzle may be so much easier than one that is given out now: others came in while it was solved."""
_KEY_BYTES = 32
_PURPOSE = b"groundwork guest puzzles v1"
_CHALLENGE = re.compile(
    r"(?P<guest_id>[0-9a-f]{24})\.(?P<bits>[0-9]{1,2})\.(?P<ends_at>[0-9]{1,11})\.(?P<mac>[0-9a-f]{64})"
)
_SOLUTION = re.compile(r"[0-9]{1,16}")


class ProofRefused(InvalidArgument):
    """The proof of work is not one."""

    reason = "PROOF_REFUSED"


@dataclass(frozen=True)
class Puzzle:
    """What a browser has to solve: find a number so that SHA-256 of `seed.number` begins with `bits` zero bits."""

    challenge: str
    seed: str
    bits: int
    ends_at: float
    """Seconds since the epoch."""


def needed_bits(base: int, of_address: int, guests: int, most: int) -> int:
    """How hard a puzzle is: a bit more for each doubling of the guests of an address, and for each quarter of all places."""
    return base + min(_ADDED_BITS, math.ceil(math.log2(1 + of_address)) + _LOAD_BITS * guests // most)


class Puzzles:
    """Makes and checks puzzles. `now` is the time of day in seconds since the epoch."""

    def __init__(self, keys: KeySource[SigningKey], now: Callable[[], float]) -> None:
        self._keys = keys
        self._now = now
        self._derived: tuple[str, bytes] = ("", b"")

    def make(self, bits: int, origin: str) -> Puzzle:
        """A puzzle for a client of that address."""
        seed, ends_at = secrets.token_hex(12), int(self._now()) + LIVES_S
        text = f"{seed}.{bits}.{ends_at}"
        return Puzzle(f"{text}.{self._sign(text, origin)}", seed, bits, ends_at)

    def solved(self, challenge: str, solution: str, origin: str, needed: int) -> str:
        """The id of the guest whose puzzle is solved, which is good for one guest. Raises ProofRefused."""
        matched = _CHALLENGE.fullmatch(challenge)
        text = challenge.rpartition(".")[0]
        if matched is None or not hmac.compare_digest(matched["mac"], self._sign(text, origin)):
            raise ProofRefused("this challenge was not given to this address by this installation; get another one")
        if self._now() >= int(matched["ends_at"]):
            raise ProofRefused("the challenge has expired; get another one")
        bits = int(matched["bits"])
        if bits + _GRACE_BITS < needed:
            raise ProofRefused("others came in meanwhile, so that more work is needed now; get another challenge")
        if not _SOLUTION.fullmatch(solution) or zero_bits(f"{matched['guest_id']}.{solution}") < bits:
            raise ProofRefused(
                f"the hash of this solution does not begin with {bits} zero bits; find one whose hash does"
            )
        return matched["guest_id"]

    def digest_of(self, origin: str) -> str:
        """A name for an address that says nothing of it to those without the key."""
        return self._sign("origin", origin)[:32]

    def _sign(self, text: str, origin: str) -> str:
        return hmac.new(self._key(), f"{text}\n{origin}".encode(), hashlib.sha256).hexdigest()

    def _key(self) -> bytes:
        key = self._keys.current()
        if self._derived[0] != key.kid:
            derivation = HKDF(SHA256(), _KEY_BYTES, salt=None, info=_PURPOSE)
            self._derived = key.kid, derivation.derive(key.key.private_bytes_raw())
        return self._derived[1]


def zero_bits(text: str) -> int:
    """How many zero bits the SHA-256 of a text begins with."""
    digest = hashlib.sha256(text.encode()).digest()
    return 8 * len(digest) - int.from_bytes(digest).bit_length()
