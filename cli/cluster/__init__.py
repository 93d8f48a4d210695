"""`groundwork cluster`: the system on Kubernetes, beside `helm` and `kubectl`. Has the rights of its caller's kubeconfig."""

from __future__ import annotations

import typer

from cli.cluster.backups import backup, restore
from cli.cluster.doctor import doctor
from cli.cluster.keys.prepare import prepare
from cli.cluster.keys.signing_keys import signing_keys
from cli.cluster.model import model
from cli.operating.installation_check import check_installation
from cli.operating.reloading import reload

cluster = typer.Typer(no_args_is_help=True, help="The system on a Kubernetes cluster, beside helm and kubectl.")
cluster.command()(prepare)
cluster.command(name="test")(check_installation)
cluster.command()(doctor)
cluster.command()(model)
cluster.command()(backup)
cluster.command()(restore)
cluster.command(hidden=True)(reload)
cluster.add_typer(signing_keys, name="signing-keys")
