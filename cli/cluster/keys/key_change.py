"""A change of the signing keys that reaches every pod: what changed in the copy of the key folder is written to the cluster, and
the pods are waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from cli.cluster.connection.objects import Objects, Texts
from cli.cluster.connection.release import Release
from cli.cluster.errors import ClusterError
from cli.cluster.keys.key_set import PUBLIC_KEYS_ENTRY, SIGNING_KEY_ENTRY, KeySet, publish, read_keys, signing_secret
from cli.cluster.keys.taking_over import TakingOver
from kit.access.key_folder import KeyFolder
from kit.access.key_metrics import PUBLIC, SIGNING, fingerprint
from kit.access.keys import parse_public_keys, parse_signing_key
from ops.signers import SIGNERS


@dataclass
class KeyChange:
    """Of one installation, whose keys lie in a folder meanwhile."""

    objects: Objects
    keys: KeySet
    pods: TakingOver
    _written: dict[str, str] = field(default_factory=dict)
    """Private keys as the cluster has them, by signer."""
    _seen: Texts | None = None

    def __post_init__(self) -> None:
        self._written = {signer: self.keys.private(signer) for signer in SIGNERS}
        self._seen = self.keys.published

    async def apply(self, change: Callable[[KeyFolder], None]) -> None:
        """Runs the change of the folder in a thread; where it waits for who reads the folder, the pods are given what it holds."""
        loop = asyncio.get_running_loop()

        def spread(_: float) -> None:
            asyncio.run_coroutine_threadsafe(self.spread(), loop).result()

        await asyncio.to_thread(change, replace(self.keys.folder, sleep=spread))

    async def spread(self) -> None:
        """Brings the cluster to what the folder holds, and returns when every pod has it. Raises ClusterError."""
        for signer in SIGNERS:
            private = self.keys.private(signer)
            if private != self._written[signer]:
                await self.objects.replace_secret(signing_secret(signer), SIGNING_KEY_ENTRY, private)
                self._written[signer] = private
        if self._seen is None or self._seen.data.get(PUBLIC_KEYS_ENTRY) != self.keys.public():
            self._seen = await publish(self.objects, self.keys.public(), self._seen)
        if self._seen is None:
            raise ClusterError(
                "The keys were changed by somebody else at the same time, an upgrade perhaps. Run it again."
            )
        known = fingerprint(parse_public_keys(self.keys.public()))
        await self.pods.wait("the public keys", PUBLIC, lambda _: known)
        await self.wait_for_signers()

    async def wait_for_signers(self) -> None:
        """Returns when each signer's pods sign with the key that the cluster has for them."""
        current = {signer: fingerprint([parse_signing_key(text).kid]) for signer, text in self._written.items()}
        await self.pods.wait("their signing keys", SIGNING, current.get)


@asynccontextmanager
async def changing(objects: Objects, timeout_s: float, report: Callable[[str], None]) -> AsyncIterator[KeyChange]:
    """Raises ClusterError where a key is missing."""
    async with read_keys(objects) as keys:
        if keys.missing or keys.published is None:
            missing = [*map(signing_secret, keys.missing), *([] if keys.published else ["public-keys"])]
            named = ", ".join(objects.object_name(each) for each in missing)
            raise ClusterError(
                f"{named} is not there. Are --namespace and --name those of the installation? groundwork cluster prepare makes "
                "what is missing."
            )
        pods = TakingOver(objects.api, Release(objects.namespace, objects.release), timeout_s, report)
        yield KeyChange(objects, keys, pods)
