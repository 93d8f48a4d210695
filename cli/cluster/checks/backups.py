"""Backups that fail or are old."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from cli.cluster.checks.finding import Finding, shortened
from cli.cluster.quantities import in_time
from cli.cluster.snapshot import BackupRuns, Snapshot

_RUNS_WITHIN = timedelta(hours=6)
"""One that was started so long ago has failed or hangs."""
_OLD = timedelta(days=2)
"""Without a run since: a schedule that runs less often is no protection."""


def failed_backup(snapshot: Snapshot) -> Iterable[Finding]:
    """The newest run failed."""
    backups = snapshot.backups
    if backups is None or not backups.failed_job:
        return
    words = f", its last words: {shortened(backups.last_words.splitlines()[-1])}" if backups.last_words else ""
    sentence = f"The last backup failed (job {backups.failed_job}{words}){_newest(snapshot, backups)}"
    cure = f"remove the cause and try again: kubectl create job --from=cronjob/{backups.name} {backups.name}-again"
    yield Finding("BACKUP_FAILED", f"cronjob {backups.name}", sentence, cure)


def old_backup(snapshot: Snapshot) -> Iterable[Finding]:
    """No run has succeeded for long, or backups are switched off."""
    backups = snapshot.backups
    if backups is None or backups.failed_job:
        return
    about = f"cronjob {backups.name}"
    if backups.suspended:
        sentence = f"Backups are suspended{_newest(snapshot, backups)}"
        yield Finding(
            "BACKUP_SUSPENDED",
            about,
            sentence,
            f'kubectl patch cronjob {backups.name} -p \'{{"spec":{{"suspend":false}}}}\'',
        )
        return
    if _is_late(snapshot, backups):
        sentence = f"No backup has succeeded as it should (schedule {backups.schedule}){_newest(snapshot, backups)}"
        cure = (
            f"kubectl describe cronjob {backups.name} says why; kubectl create job --from=cronjob/{backups.name} "
            "makes one now"
        )
        yield Finding("BACKUP_OLD", about, sentence, cure)


def _is_late(snapshot: Snapshot, backups: BackupRuns) -> bool:
    since = backups.last_succeeded_at or backups.created_at
    if since is None:
        return False
    started = backups.last_started_at
    hangs = started is not None and since < started and snapshot.taken_at - started > _RUNS_WITHIN
    return hangs or snapshot.taken_at - since > _OLD


def _newest(snapshot: Snapshot, backups: BackupRuns) -> str:
    if backups.last_succeeded_at is None:
        return ", and there is none yet"
    return f", the newest is {in_time(snapshot.taken_at - backups.last_succeeded_at)} old"
