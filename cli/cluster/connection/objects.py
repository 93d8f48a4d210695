"""Secrets, ConfigMaps and claims of one installation: read, made where missing, and changed only by who has seen the last state."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

from cli.cluster.connection.api import Api, Json
from cli.cluster.connection.pods import NAME_LABEL, PRODUCT, RELEASE_LABEL
from cli.cluster.connection.refusals import Conflict
from cli.cluster.connection.release import namespaced
from cli.cluster.errors import ClusterError

_MANAGED_BY = "app.kubernetes.io/managed-by"


@dataclass(frozen=True)
class Texts:
    """What a ConfigMap holds, and the version of it that was read."""

    data: Mapping[str, str]
    version: str


@dataclass(frozen=True)
class Objects:
    """Of the installation whose objects' names begin with `name`, and whose Helm release is `release`."""

    api: Api
    namespace: str
    name: str
    release: str

    def object_name(self, component: str) -> str:
        """The name of an object of the installation."""
        return f"{self.name}-{component}"

    async def secret(self, component: str, key: str) -> str | None:
        """What a Secret has under `key`; None when there is no such Secret. Raises ClusterError when it lacks the key."""
        found = await self.api.get_if_there(self._path("secrets", component))
        if found is None:
            return None
        encoded = (found.get("data") or {}).get(key)
        if not encoded:
            raise ClusterError(
                f"Secret {self.object_name(component)} has no `{key}`. Add it, or delete the Secret: then one is made."
            )
        return base64.b64decode(encoded).decode("utf-8", "replace")

    async def create_secret(self, component: str, key: str, value: str, *, is_of_chart: bool = False) -> bool:
        """False when there is one already: somebody else was first. `is_of_chart`: Helm may take it over, because the chart has a
        Secret of that name when a value for it is given."""
        metadata = self._metadata(component)
        if is_of_chart:
            metadata["labels"][_MANAGED_BY] = "Helm"
            metadata["annotations"] = {
                "meta.helm.sh/release-name": self.release,
                "meta.helm.sh/release-namespace": self.namespace,
            }
        return await self._create("secrets", {"metadata": metadata, "type": "Opaque", "stringData": {key: value}})

    async def replace_secret(self, component: str, key: str, value: str) -> None:
        """Changes one entry of a Secret that is there."""
        await self.api.patch(self._path("secrets", component), {"stringData": {key: value}})

    async def make_claim(self, component: str, size: str, storage_class: str) -> bool:
        """A volume of that size, of the cluster's default class when none is named. False when there is such a claim."""
        if await self.api.get_if_there(self._path("persistentvolumeclaims", component)) is not None:
            return False
        spec: Json = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
        if storage_class:
            spec["storageClassName"] = storage_class
        return await self._create("persistentvolumeclaims", {"metadata": self._metadata(component), "spec": spec})

    async def config_map(self, component: str) -> Texts | None:
        """None when there is none."""
        found = await self.api.get_if_there(self._path("configmaps", component))
        return _texts(found) if found else None

    async def write_config_map(self, component: str, data: Mapping[str, str], seen: Texts | None) -> Texts | None:
        """Makes it, or changes what was `seen`; keeps entries that are not named. None when it is another by now."""
        try:
            if seen is None:
                body: Json = {"metadata": self._metadata(component), "data": dict(data)}
                return _texts(await self.api.create(namespaced(self.namespace, "v1/configmaps"), body))
            change: Json = {"metadata": {"resourceVersion": seen.version}, "data": dict(data)}
            return _texts(await self.api.patch(self._path("configmaps", component), change))
        except Conflict:
            return None

    async def _create(self, kind: str, body: Json) -> bool:
        """False when there is one of that name already."""
        try:
            await self.api.create(namespaced(self.namespace, f"v1/{kind}"), body)
        except Conflict:
            return False
        return True

    def _path(self, kind: str, component: str) -> str:
        return f"{namespaced(self.namespace, f'v1/{kind}')}/{self.object_name(component)}"

    def _metadata(self, component: str) -> Json:
        labels = {NAME_LABEL: PRODUCT, RELEASE_LABEL: self.release, _MANAGED_BY: "groundwork"}
        return {"name": self.object_name(component), "labels": labels}


def _texts(config_map: Json) -> Texts:
    return Texts(config_map.get("data") or {}, config_map["metadata"]["resourceVersion"])
