"""Whether what a service signs can be verified: its key must be among the public ones that all services have. When it is not, every
call that the service makes is refused by others (BAD_TOKEN), which says nothing about why."""

from collections.abc import Mapping, Sequence

from kit.access.keys import KeySource, PublicKey, SigningKey
from kit.observability.ops import Trouble

PART = "signing key"


class OwnKey:
    """Compares the two as they are now: both files may change while the service runs."""

    def __init__(self, signing: KeySource[SigningKey] | None, public: KeySource[Mapping[str, PublicKey]]) -> None:
        self._signing = signing
        self._public = public

    def troubles(self) -> Sequence[Trouble]:
        """One while they do not go together. The service goes on: during a rotation a pod may have its new key before it has the
        new public ones, and what it serves itself is as good as before."""
        if self._signing is None:
            return ()
        own = self._signing.current()
        public = self._public.current().get(own.kid)
        if public is not None and public.key == own.key.public_key():
            return ()
        what = "is not among the public keys" if public is None else "is another than the public one of that id"
        return (Trouble(PART, f"{own.kid} {what}, so that other services refuse what this one asks (BAD_TOKEN)"),)
