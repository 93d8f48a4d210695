"""What the job `prepare` makes in a release's namespace before anything else is there, by the tables that it goes by."""

from collections.abc import Iterator
from dataclasses import dataclass

from cli.cluster.keys.prepare import ROUTES
from ops.nats_users import ADMINISTRATOR
from ops.signers import SIGNERS
from ops.state import USERS
from tests.chart.release import Release


@dataclass(frozen=True)
class Made:
    """A Secret, a ConfigMap or a claim."""

    kind: str
    name: str
    keys: tuple[str, ...]


def made_by_prepare(release: Release) -> Iterator[Made]:
    name = release.fullname
    for signer in SIGNERS:
        yield Made("Secret", f"{name}-signing-{signer}", ("signing-key.json",))
    for user in (*USERS, ADMINISTRATOR, ROUTES):
        yield Made("Secret", f"{name}-nats-{user}", ("password",))
    yield Made("ConfigMap", f"{name}-public-keys", ("public.json",))
    yield Made("Secret", f"{name}-bootstrap-key", ("key",))
    yield Made("Secret", f"{name}-qdrant", ("api-key",))
    if f"{name}-backup" in _claimed(release):
        yield Made("PersistentVolumeClaim", f"{name}-backup", ())


def _claimed(release: Release) -> set[str]:
    volumes = [volume for pod in release.pods() for volume in pod.volumes().values()]
    return {each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each}
