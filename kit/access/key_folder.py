"""A folder with the keys of a whole system: `<signer>.json` is the private key of a signer, `public.json` the key set that all
verify with.

A signer has its current key. Its previous one may still be among the public keys, so that what was signed with it stays good:
tokens for five minutes, queued jobs until they are done. So may keys of another system whose queues were brought here by a restored
backup: these are good for its queued jobs and for nothing else.
"""

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit.access.keys import Jwk, new_key, parse_signing_key, public_half
from kit.file_source import RECHECK_AFTER_S
from kit.private_files import write_private

Signers = Mapping[str, Iterable[str]]
"""Who signs, and for which calls ("room/Method", "room/*")."""


_UNTIL_ALL_KNOW_S = 1.5 * RECHECK_AFTER_S
_RESTORED = "restored"
"""Marks the public half of a key that came with a backup."""
_JOBS = "jobs/"


@dataclass(frozen=True)
class KeyFolder:
    """The keys in `path`. One process writes at a time; services that run read what it writes."""

    path: Path
    sleep: Callable[[float], None] = time.sleep

    @property
    def public_keys_file(self) -> Path:
        """The key set of all signers."""
        return self.path / "public.json"

    def signing_key_file(self, signer: str) -> Path:
        """The private key of one signer."""
        return self.path / f"{signer}.json"

    def ensure(self, signers: Signers) -> None:
        """Makes the keys that are missing, and brings the public set to what `signers` says: nobody else is in it."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for signer in signers:
            if self._private(signer) is None:
                self._write(self.signing_key_file(signer), new_key(signer))
        self._publish(signers)

    def add(self, signer: str, calls: Iterable[str]) -> None:
        """A key for one more signer, such as a tool of the operator's, until the next `ensure`. Returns when all know it."""
        private = self._private(signer) or new_key(signer)
        published, entry = self._published(), public_half(private, calls)
        if entry in published:
            return
        others = [other for other in published if _signer_of(other) != signer]
        self._write(self.public_keys_file, {"keys": [*others, entry]})
        self._write(self.signing_key_file(signer), private)
        self.sleep(_UNTIL_ALL_KNOW_S)

    def rotate(self, signers: Signers, chosen: Iterable[str]) -> None:
        """Gives the chosen signers new keys. Their keys until now stay good until the next time, or until `forget`.

        Takes a few seconds and refuses nobody meanwhile: all know a public key before anything is signed with the private one.
        Returns when all sign with their new keys. Who had none gets one, and that is all.
        """
        made = {signer: new_key(signer) for signer in chosen if self._private(signer)}
        self.ensure(signers)
        if not made:
            return
        entries = [public_half(private, signers[signer]) for signer, private in made.items()]
        self._write(self.public_keys_file, {"keys": entries + self._published()})
        self.sleep(_UNTIL_ALL_KNOW_S)
        for signer, private in made.items():
            self._write(self.signing_key_file(signer), private)
        self._publish(signers, rotated=made)
        self.sleep(_UNTIL_ALL_KNOW_S)

    def forget(self, signers: Signers, chosen: Iterable[str]) -> None:
        """Takes the previous keys of the chosen signers away: nothing that was signed with them is good any more."""
        self.ensure(signers)
        self._publish(signers, forgotten=set(chosen))

    def public_keys(self) -> list[Jwk]:
        """The key set of all signers, for a backup: what is signed and still waits must be verified where it is restored."""
        return [public_half(entry, entry["calls"]) for entry in self._published()]

    def trust_for_jobs(self, signers: Signers, keys: Iterable[Jwk]) -> None:
        """Has jobs verified that were queued elsewhere, where these were the public keys. They are good for the jobs that their
        signer queues and for no call, until its next rotation or until `forget`."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        published = self._published()
        known = {entry["kid"] for entry in published}
        added = [_restored(key, signers) for key in keys if key["kid"] not in known and _signer_of(key) in signers]
        added = [entry for entry in added if entry["calls"]]
        if added:
            self._write(self.public_keys_file, {"keys": [*published, *added]})

    def _publish(self, signers: Signers, forgotten: Collection[str] = (), rotated: Collection[str] = ()) -> None:
        known = self._published()
        entries = []
        for signer, calls in signers.items():
            private = self._private(signer) or {}
            current = public_half(private, calls)
            earlier = [entry for entry in known if _signer_of(entry) == signer and entry["kid"] != current["kid"]]
            previous = [] if signer in forgotten else [entry for entry in earlier if _RESTORED not in entry][:1]
            restored = [] if signer in {*forgotten, *rotated} else [entry for entry in earlier if _RESTORED in entry]
            entries += [
                current,
                *(public_half(entry, calls) for entry in previous),
                *(_restored(entry, signers) for entry in restored),
            ]
        self._write(self.public_keys_file, {"keys": entries})

    def _private(self, signer: str) -> Jwk | None:
        """None when there is no key, or none that can be read: a power cut may have emptied the file."""
        try:
            text = self.signing_key_file(signer).read_text("utf-8")
            parse_signing_key(text)
        except (FileNotFoundError, ValueError):
            return None
        private: Jwk = json.loads(text)
        return private

    def _published(self) -> list[Jwk]:
        try:
            entries: list[Jwk] = json.loads(self.public_keys_file.read_text("utf-8"))["keys"]
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return []
        return entries

    @staticmethod
    def _write(path: Path, content: Any) -> None:
        write_private(path, json.dumps(content, indent=2) + "\n")


def _signer_of(entry: Jwk) -> str:
    return str(entry["kid"]).rpartition("-")[0]


def _restored(entry: Jwk, signers: Signers) -> Jwk:
    calls = [call for call in signers[_signer_of(entry)] if call.startswith(_JOBS)]
    return {**public_half(entry, calls), _RESTORED: True}
