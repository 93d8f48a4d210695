"""What is wrong with an installation, found in a snapshot. One small function a trouble; each names it in one sentence, with its
cure.

A cause is named once: what only follows from it (pods of a lost node, services that wait for a message store that is away) is left
out by the function that would find it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from cli.cluster.checks.backups import failed_backup, old_backup
from cli.cluster.checks.credentials import ending_certificates, refused_passwords, unknown_signing_keys
from cli.cluster.checks.finding import Finding
from cli.cluster.checks.message_store import (
    full_message_store,
    lagging_servers,
    missing_servers,
    missing_stream_copies,
    silent_servers,
)
from cli.cluster.checks.nodes import lost_nodes, nodes_under_pressure
from cli.cluster.checks.pods import (
    crashing,
    evicted,
    failed_preparation,
    killed_for_memory,
    missing_secrets,
    not_ready,
    unpullable_images,
    unschedulable,
)
from cli.cluster.checks.scaling import blind_autoscalers, budgets_that_forbid_drains, no_keda, refused_pods
from cli.cluster.checks.services import services_in_trouble, silent_ports, unreachable_models
from cli.cluster.checks.volumes import full_volumes, unbound_claims
from cli.cluster.checks.work import damaged_records, dead_letters
from cli.cluster.snapshot import Snapshot

Check = Callable[[Snapshot], Iterable[Finding]]

CHECKS: Sequence[Check] = (
    lost_nodes,
    nodes_under_pressure,
    failed_preparation,
    missing_secrets,
    unpullable_images,
    crashing,
    killed_for_memory,
    unschedulable,
    evicted,
    refused_pods,
    refused_passwords,
    unknown_signing_keys,
    ending_certificates,
    full_volumes,
    full_message_store,
    unbound_claims,
    silent_servers,
    missing_servers,
    lagging_servers,
    missing_stream_copies,
    unreachable_models,
    services_in_trouble,
    not_ready,
    silent_ports,
    blind_autoscalers,
    no_keda,
    budgets_that_forbid_drains,
    dead_letters,
    damaged_records,
    failed_backup,
    old_backup,
)
"""Causes first: the order in which they are told."""


def findings(snapshot: Snapshot) -> list[Finding]:
    """All that is wrong, each once."""
    return list(dict.fromkeys(found for check in CHECKS for found in check(snapshot)))


__all__ = ["CHECKS", "Finding", "findings"]
