"""`groundwork cluster prepare`: makes the Secrets, the ConfigMap and the claim that the chart's pods mount, before they start.

The chart runs it as a hook before each install and upgrade. What is there is never changed, except for the public keys, which are
brought up to date with what this version's services call. Several at once do no harm: each object is made by one of them. The claim
of backups is not the chart's own because many clusters bind a volume to its first pod, which here comes at night: `helm --wait`
would wait for it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncGenerator
from typing import Annotated

import typer

from cli.cluster.connection.api import Api
from cli.cluster.connection.objects import Objects
from cli.cluster.connection.release import DEFAULT_NAMESPACE
from cli.cluster.errors import ClusterError
from cli.cluster.options import Context, Name, Namespace
from cli.cluster.running import run_on
from ops.nats_users import ADMINISTRATOR
from ops.state import USERS

BACKUP = "backup"
BOOTSTRAP_KEY = "bootstrap-key"
"""An operator's, which the gateways accept as long as the chart names it."""
QDRANT = "qdrant"
ROUTES = "routes"
"""By which NATS servers know each other."""
_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9]{7,}")


def prepare(
    name: Name = "groundwork",
    release: Annotated[
        str, typer.Option(metavar="RELEASE", help="Name of the Helm release, for labels; FULLNAME if left out.")
    ] = "",
    namespace: Namespace = "",
    context: Context = "",
    bootstrap_key: Annotated[
        bool, typer.Option(help="Whether the first API key is made, in Secret FULLNAME-bootstrap-key.")
    ] = True,
    qdrant_key: Annotated[
        bool, typer.Option("--qdrant-key", help="Also a key for the chart's Qdrant, in Secret FULLNAME-qdrant.")
    ] = False,
    backup_claim: Annotated[
        str, typer.Option(metavar="SIZE", help="Also a volume for backups, claim FULLNAME-backup, of this size (50Gi).")
    ] = "",
    backup_storage_class: Annotated[
        str, typer.Option(metavar="CLASS", help="Its storage class; the cluster's default if left out.")
    ] = "",
) -> None:
    """Make the objects of an installation that are missing: signing keys, passwords of NATS, the first API key, room for backups.

    The chart runs this before it installs or upgrades. What is there stays as it is; the list of public keys is brought up to date.
    """

    async def command(api: Api) -> int:
        objects = Objects(api, namespace or api.context_namespace or DEFAULT_NAMESPACE, name, release or name)
        async for change in _prepare(objects, bootstrap_key=bootstrap_key, qdrant_key=qdrant_key):
            typer.echo(change)
        if backup_claim and await objects.make_claim(BACKUP, backup_claim, backup_storage_class):
            typer.echo(f"Made claim {objects.object_name(BACKUP)} of {backup_claim}.")
        typer.echo(f"{name} in {objects.namespace} has its Secrets and public keys.")
        return 0

    run_on(command, context)


async def _prepare(objects: Objects, *, bootstrap_key: bool, qdrant_key: bool) -> AsyncGenerator[str, None]:
    """Yields what it did."""
    from cli.cluster.keys.key_set import ensure_keys  # noqa: PLC0415 - the cryptography behind it takes time to load

    async for change in ensure_keys(objects):
        yield change
    for user in (ADMINISTRATOR, ROUTES, *USERS):
        if await _make_password(objects, f"nats-{user}"):
            yield f"Made Secret {objects.object_name(f'nats-{user}')}."
    if bootstrap_key and await _make_key(objects, BOOTSTRAP_KEY, "key", is_of_chart=True):
        yield f"Made Secret {objects.object_name(BOOTSTRAP_KEY)}: the first API key, an operator's."
    if qdrant_key and await _make_key(objects, QDRANT, "api-key"):
        yield f"Made Secret {objects.object_name(QDRANT)}."


async def _make_password(objects: Objects, component: str) -> bool:
    """Of a user of NATS, or of its servers among themselves. False when there is one that can be used."""
    present = await objects.secret(component, "password")
    if present is None:
        return await objects.create_secret(component, "password", f"p{secrets.token_hex(24)}")
    if not _PASSWORD.fullmatch(present):
        raise ClusterError(
            f"The password in Secret {objects.object_name(component)} cannot stand in an address and in nats-server's "
            "configuration. Use at least 8 letters and digits, and begin with a letter."
        )
    return False


async def _make_key(objects: Objects, component: str, entry: str, *, is_of_chart: bool = False) -> bool:
    """Of the gateway or of Qdrant. False when there is one."""
    present = await objects.secret(component, entry)
    if present is not None:
        return False
    return await objects.create_secret(component, entry, secrets.token_urlsafe(32), is_of_chart=is_of_chart)
