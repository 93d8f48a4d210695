"""The signing keys of an installation: a Secret for each signer's private key, one ConfigMap with the public keys of all.

A folder with copies of both is what `KeyFolder` works on. What it changed is written back, unless somebody else was faster: then
all is read and done again.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from cli.cluster.connection.concurrency import gathered
from cli.cluster.connection.objects import Objects, Texts
from cli.cluster.errors import ClusterError
from kit.access.key_folder import KeyFolder
from kit.access.keys import Jwk, parse_signing_key
from ops.signers import SIGNERS

PUBLIC_KEYS = "public-keys"
PUBLIC_KEYS_ENTRY = "public.json"
SIGNING_KEY_ENTRY = "signing-key.json"
_PASSES = 10
"""Another pass follows each that changed something, or found it changed. More than a few are a quarrel."""


def signing_secret(signer: str) -> str:
    """The component that stands in the name of a signer's Secret."""
    return f"signing-{signer}"


@dataclass(frozen=True)
class KeySet:
    """The keys as they were read, in a folder that may be changed."""

    folder: KeyFolder
    missing: tuple[str, ...]
    """Signers that have no Secret."""
    published: Texts | None

    def private(self, signer: str) -> str:
        """The private key of a signer, as it is now in the folder."""
        return self.folder.signing_key_file(signer).read_text("utf-8")

    def public(self) -> str:
        """The public keys of all, as they are now in the folder."""
        return self.folder.public_keys_file.read_text("utf-8")

    @property
    def is_published(self) -> bool:
        """Whether the cluster has the folder's public keys."""
        return self.published is not None and self.published.data.get(PUBLIC_KEYS_ENTRY) == self.public()


@asynccontextmanager
async def read_keys(objects: Objects) -> AsyncIterator[KeySet]:
    """The keys of the installation, in a folder that is removed afterwards. Raises ClusterError for a Secret that holds no key."""
    with tempfile.TemporaryDirectory(prefix="keys-") as temporary:
        folder = KeyFolder(Path(temporary))
        there = await gathered(_copy_private(objects, signer, folder) for signer in SIGNERS)
        missing = tuple(signer for signer, is_there in zip(SIGNERS, there, strict=True) if not is_there)
        published = await objects.config_map(PUBLIC_KEYS)
        _copy_public(published, folder)
        yield KeySet(folder, missing, published)


async def ensure_keys(objects: Objects) -> AsyncGenerator[str, None]:
    """Makes the keys that are missing and brings the public ones up to date; yields what it did.

    Goes on until it finds nothing to do, so that all who run at once end with the same keys.
    """
    for _ in range(_PASSES):
        async with read_keys(objects) as keys:
            keys.folder.ensure(SIGNERS)
            made = [
                signer
                for signer in keys.missing
                if await objects.create_secret(signing_secret(signer), SIGNING_KEY_ENTRY, keys.private(signer))
            ]
            for signer in made:
                yield f"Made Secret {objects.object_name(signing_secret(signer))}."
            if len(made) < len(keys.missing):
                continue  # somebody else made one: its key is the right one
            if keys.is_published:
                return
            if await publish(objects, keys.public(), keys.published):
                yield f"Brought ConfigMap {objects.object_name(PUBLIC_KEYS)} up to date."
    raise _quarrel(objects)


def _quarrel(objects: Objects) -> ClusterError:
    return ClusterError(
        f"Somebody keeps changing the signing keys of {objects.name}. Who does is in: kubectl get configmap "
        f"{objects.object_name(PUBLIC_KEYS)} -o yaml --show-managed-fields"
    )


async def trust_for_jobs(objects: Objects, keys: Iterable[Jwk]) -> int:
    """Adds public keys of another system, whose queued jobs are here now, for these alone; how many were not known."""
    keys = list(keys)
    for _ in range(_PASSES):
        seen = await objects.config_map(PUBLIC_KEYS)
        with tempfile.TemporaryDirectory(prefix="keys-") as temporary:
            folder = KeyFolder(Path(temporary))
            _copy_public(seen, folder)
            before = len(folder.public_keys())
            folder.trust_for_jobs(SIGNERS, keys)
            added = len(folder.public_keys()) - before
            if not added or await publish(objects, folder.public_keys_file.read_text("utf-8"), seen):
                return added
    raise _quarrel(objects)


async def publish(objects: Objects, public: str, seen: Texts | None) -> Texts | None:
    """Writes the public keys to the ConfigMap. None when somebody changed it since it was `seen`."""
    return await objects.write_config_map(PUBLIC_KEYS, {PUBLIC_KEYS_ENTRY: public}, seen)


def _copy_public(published: Texts | None, folder: KeyFolder) -> None:
    if published and (text := published.data.get(PUBLIC_KEYS_ENTRY)):
        folder.public_keys_file.write_text(text, "utf-8")


async def _copy_private(objects: Objects, signer: str, folder: KeyFolder) -> bool:
    text = await objects.secret(signing_secret(signer), SIGNING_KEY_ENTRY)
    if text is None:
        return False
    try:
        parse_signing_key(text)
    except ValueError as error:
        name = objects.object_name(signing_secret(signer))
        raise ClusterError(
            f"Secret {name} holds no signing key: {error}. Put the key back, or delete the Secret: then one is made."
        ) from error
    folder.signing_key_file(signer).write_text(text, "utf-8")
    return True
