"""What the commands for operators do that look at the message store itself: ``groundwork backup``, ``restore`` and
``doctor``.

They work on a system that runs on this machine, whose address is in its data directory; on one that does not run, by starting its
message store for themselves; and on a cluster, whose message store GROUNDWORK_NATS_URL names.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cli.operating import surroundings
from kit.access.key_folder import KeyFolder
from kit.access.keys import Jwk, KeySource, parse_public_keys
from kit.access.tokens import TokenVerifier
from kit.errors import GroundworkError
from kit.file_source import FileSource
from kit.jetstream import Nats, connect
from kit.process.broken_pipe import reader_has_gone
from ops.backup import folder
from ops.backup.archive import Manifest, open_verified
from ops.backup.make import back_up
from ops.backup.restore import restore_data_dir, restore_into
from ops.doctor import Diagnosis, examine, examine_copy
from ops.errors import BackupRefused, BackupUnusable, OperatorError
from ops.signers import SIGNERS
from ops.watch import findings
from ops.work import WorkReport, observe_work
from services.standalone.app import find_nats_server, read_standalone_settings
from services.standalone.console import keep_terminal_for_people
from services.standalone.errors import NotRunning
from services.standalone.private_store import private_store
from services.standalone.settings import StandaloneSettings, inherited_environment
from services.standalone.storage.data_dir import LEDGER_FILE, VERSION_FILE, DataDir, open_data_dir
from services.standalone.supervising.models import StartLimits
from services.standalone.supervising.state_file import read_running
from services.standalone.topology import nats_start_limits

CONNECT_TIMEOUT_S = 10.0
_DAMAGED = "The stored data is damaged, so no backup was made: it would lack what is gone."
_ANYWAY = (
    "Start Groundwork, which puts right what can be; restore an earlier backup for the rest, or say that you have seen it: "
    "groundwork doctor --accept. With --anyway what is there is backed up now, and the backup marked as damaged."
)


def backup(
    place: Path, *, anyway: bool = False, keys: Path | None = None, keep: int | None = None, indexes: bool = False
) -> int:
    """Writes a backup to a file, or to a new one in a folder, where the newest `keep` remain; the exit code.

    A damaged store is refused, or with `anyway` copied and the backup marked. `keys`: the folder of the services' keys, if not that
    of the data directory, or the file of their public keys. `indexes`: with the indexes of a system that is stopped.
    """

    async def run() -> None:
        settings = read_standalone_settings()
        public_keys = await asyncio.to_thread(_public_keys, settings, keys)
        index_folder = await asyncio.to_thread(_index_folder, settings) if indexes else None
        file = await asyncio.to_thread(_new_backup, place, keep)
        async with message_store(settings) as nats:
            damage = await _damage(nats, settings)
            if damage and not anyway:
                raise BackupRefused("\n".join((_DAMAGED, *damage, _ANYWAY)))
            manifest = await back_up(
                nats, file, _now, _say_stream, public_keys=public_keys, damage=damage, indexes=index_folder
            )
        size_kb = (await asyncio.to_thread(file.stat)).st_size // 1024
        _say(f"{file}: {_described(manifest)}, {size_kb} KB. It holds your documents and threads: keep it private.")
        if damage:
            _say("\n".join(("It is marked as damaged:", *damage)))
        elif keep is not None:
            for older in await asyncio.to_thread(folder.remove_older_files, place, keep):
                _say(f"{older}: removed, because {keep} newer ones are there.")

    return exit_code_of(run())


def _index_folder(settings: StandaloneSettings) -> Path:
    """The folder of both indexes, which can be copied while nobody writes to it."""
    folder = settings.data_dir / "retriever"
    if settings.nats_url or not folder.is_dir():
        raise BackupUnusable(
            f"There are no indexes in {settings.data_dir}: those on servers are backed up there. Leave --indexes out"
        )
    if running_nats_url(settings.data_dir):
        raise BackupUnusable(
            "Indexes are copied while nobody writes to them: stop Groundwork first, or leave --indexes out"
        )
    return folder


def _new_backup(place: Path, keep: int | None) -> Path:
    if place.is_dir():
        return folder.choose_new_file(place, _now())
    if keep is not None:
        raise BackupUnusable(f"--keep is for a folder of backups, and {place} is none: make it, or leave --keep out")
    return place


async def _damage(nats: Nats, settings: StandaloneSettings) -> list[str]:
    """What a copy made now would lack, in lines."""
    ledger = None if settings.nats_url else settings.data_dir / LEDGER_FILE
    diagnosis = await examine(nats, ledger, _now, accept=False)
    for remark in diagnosis.remarks:
        _say(remark)
    return findings.lines(diagnosis.losses)


def _public_keys(settings: StandaloneSettings, keys: Path | None) -> Sequence[Jwk]:
    """None of a cluster unless it is said where they are."""
    if settings.nats_url and keys is None:
        return ()
    public_keys = _key_folder(keys or DataDir(settings.data_dir).keys).public_keys()
    if keys and not public_keys:
        raise BackupUnusable(f"{keys} holds no public keys: name the folder of the keys, or its file public.json")
    return public_keys


def _key_folder(keys: Path) -> KeyFolder:
    """The folder, or that of the file of public keys: a pod has nothing but that."""
    return KeyFolder(keys.parent if keys.is_file() else keys)


def restore(place: Path, *, replace: bool, keys: Path | None = None) -> int:
    """Brings a backup back, of a folder the newest; the exit code. `keys`: the folder of a cluster's keys, where those of the
    backup's jobs are added."""

    async def run() -> None:
        settings = read_standalone_settings()
        file = await asyncio.to_thread(existing_backup, place)
        if settings.nats_url:
            await _restore_cluster(settings, file, keys, replace=replace)
            return
        with open_data_dir(settings.data_dir) as data_dir:
            manifest, aside = await restore_data_dir(
                data_dir, file, _private(settings), replace=replace, now=_now, on_stream=_say_stream
            )
            _say(f"Restored {_described(manifest)} into {data_dir.path}.")
            _say_damage(manifest)
            if aside:
                _say(f"What was there is in {aside}; remove it once you are sure.")
            if manifest.folders:
                _say(
                    "The backup held the indexes. What they lack is made again, beginning a minute after the next start."
                )
            else:
                _say("The indexes are made again from the documents, beginning a minute after the next start.")

    return exit_code_of(run())


def existing_backup(place: Path) -> Path:
    """The file, or the newest one in a folder. Raises BackupUnusable."""
    if not place.is_dir():
        return place
    file = folder.find_newest_file(place)
    _say(f"The newest backup in {place} is {file.name}.")
    return file


async def _restore_cluster(settings: StandaloneSettings, file: Path, keys: Path | None, *, replace: bool) -> None:
    with open_verified(file) as archive:
        async with _connected_to_cluster(settings) as nats:
            await restore_into(nats, archive, replace=replace, on_stream=_say_stream)
        manifest = archive.manifest
    _say(f"Restored {_described(manifest)}.")
    _say_damage(manifest)
    if keys and manifest.public_keys:
        key_folder = _key_folder(keys)
        await asyncio.to_thread(key_folder.trust_for_jobs, SIGNERS, manifest.public_keys)
        _say(f"{key_folder.public_keys_file} verifies the jobs in its queues now: give it to every service.")
    elif keys:
        _say(
            "The backup holds no public keys; it was made without --keys. The jobs in its queues need those they were made with."
        )
    else:
        _say(
            "Deletions that wait in its queues are done only where the keys that signed them are known: if this cluster has other "
            "keys than the one that was backed up, restore with --keys FOLDER and give its public.json to every service (on "
            "Kubernetes: groundwork cluster signing-keys trust FILE)."
        )
    _say("Start the services now.")


def _say_damage(manifest: Manifest) -> None:
    if manifest.damage:
        _say("\n".join(("This backup was made of a damaged store, and lacks what was gone then:", *manifest.damage)))


def doctor(*, accept: bool, keys: Path | None = None) -> int:
    """Says how the stored data and the jobs are, and what the next start would do; 1 when something is wrong. `keys`: as of
    `backup`."""
    sick = False

    async def run() -> None:
        nonlocal sick
        settings = read_standalone_settings()
        diagnosis = await _diagnosis(settings, _verifier(settings, keys), accept=accept)
        for line in diagnosis.lines():
            _say(line)
        sick = not diagnosis.is_well

    return exit_code_of(run()) or int(sick)


async def _diagnosis(settings: StandaloneSettings, verifier: TokenVerifier | None, *, accept: bool) -> Diagnosis:
    async def look(nats: Nats) -> WorkReport:
        return await observe_work(nats, verifier)

    if settings.nats_url:
        _say(surroundings.OF_A_CLUSTER)
        async with _connected_to_cluster(settings) as nats:
            return await examine(nats, None, _now, accept=accept, observe=look)
    if running := await asyncio.to_thread(read_running, _state_file(settings.data_dir)):
        _say("\n".join(await surroundings.of_running(running)))
        async with _connected(running.nats_url) as nats:
            return await examine(nats, settings.data_dir / LEDGER_FILE, _now, accept=accept, observe=look)
    if accept:
        raise NotRunning("Start Groundwork first: what was found is kept in its message store")
    _require_data(settings)
    with open_data_dir(settings.data_dir) as data_dir:
        _say("\n".join(await asyncio.to_thread(surroundings.of_stopped, data_dir.path, inherited_environment())))
        return await examine_copy(data_dir, _private(settings), _now, look)


def _verifier(settings: StandaloneSettings, keys: Path | None) -> TokenVerifier | None:
    """None where there are no public keys to verify with."""
    if not (public_keys := _public_keys(settings, keys)):
        return None
    key_set = json.dumps({"keys": public_keys})
    return TokenVerifier(KeySource(parse_public_keys, value=key_set, setting="GROUNDWORK_AUTH_PUBLIC_KEYS"))


def running_nats_url(data_dir: Path) -> str:
    """The message store's address when a system runs on this directory, else empty."""
    running = read_running(_state_file(data_dir))
    return running.nats_url if running else ""


def _state_file(data_dir: Path) -> Path:
    return DataDir(data_dir).state_file


@asynccontextmanager
async def message_store(settings: StandaloneSettings) -> AsyncIterator[Nats]:
    """The message store to read: that of the cluster, of the system that runs here, or of the one that does not run now."""
    if settings.nats_url:
        async with _connected_to_cluster(settings) as nats:
            yield nats
        return
    if url := await asyncio.to_thread(running_nats_url, settings.data_dir):
        async with _connected(url) as nats:
            yield nats
        return
    _require_data(settings)
    with open_data_dir(settings.data_dir) as data_dir:
        async with _private(settings)(data_dir.nats_store) as nats:
            yield nats


def _require_data(settings: StandaloneSettings) -> None:
    if not (settings.data_dir / VERSION_FILE).is_file():
        raise NotRunning(
            f"There is no data in {settings.data_dir}. Say where it is: GROUNDWORK_DATA_DIR=…, or for a cluster "
            "GROUNDWORK_NATS_URL=nats://user:password@host:4222"
        )


def _connected_to_cluster(settings: StandaloneSettings) -> AbstractAsyncContextManager[Nats]:
    return _connected(settings.nats_url, settings.nats_replicas, settings.nats_tls(settings.nats_url))


@asynccontextmanager
async def _connected(url: str, replicas: int = 1, tls: FileSource[ssl.SSLContext] | None = None) -> AsyncIterator[Nats]:
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            connection = connect(url, name="groundwork", replicas=replicas, tls=tls)
            nats = await connection.__aenter__()
    except TimeoutError as error:
        raise NotRunning(
            f"No message store answers within {CONNECT_TIMEOUT_S:g} s. "
            f"{'Are GROUNDWORK_NATS_URL and GROUNDWORK_NATS_CA_FILE' if tls else 'Is GROUNDWORK_NATS_URL'} right?"
        ) from error
    try:
        yield nats
    finally:
        await connection.__aexit__(None, None, None)


def _private(settings: StandaloneSettings) -> Callable[[Path], AbstractAsyncContextManager[Nats]]:
    limits = start_limits(settings)
    return lambda store: private_store(store, find_nats_server(), limits, _say)


def start_limits(settings: StandaloneSettings) -> StartLimits:
    """What nats-server may take until it is ready."""
    return nats_start_limits(settings.nats_start_timeout_s, settings.nats_start_memory_bytes)


def exit_code_of(command: Coroutine[Any, Any, None]) -> int:
    """Runs a command; what ends it is said in a sentence."""
    keep_terminal_for_people()
    try:
        asyncio.run(command)
        sys.stdout.flush()
    except OperatorError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except GroundworkError as error:
        sys.stderr.write(f"{error.message} ({error.reason})\n")
        return 1
    except BrokenPipeError:
        return reader_has_gone()
    except OSError as error:
        sys.stderr.write(f"{error.filename or 'A file'} cannot be written or read: {error.strerror or error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted. It can be run again.\n")
        return 130
    return 0


def _described(manifest: Manifest) -> str:
    return f"{len(manifest.streams)} streams with {manifest.messages} messages of {manifest.created_at}"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


def _say_stream(stream: str) -> None:
    sys.stderr.write(f"  {stream}\n")


def _now() -> datetime:
    return datetime.now(UTC)
