"""Opening sources by their records: the kind that is named, its settings, and its secrets, which are stored sealed."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace

from kit.errors import FailedPrecondition, Unavailable
from kit.network.egress import place_of
from services.ingest.errors import BadSource, SourceAway
from services.ingest.sources.models import SourceRecord
from services.ingest.sources.ports import (
    KeptSecrets,
    Opening,
    SecretSealer,
    SourceKind,
    SourceReader,
    SourceStore,
    Surroundings,
)

_PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Between tries to keep a secret that would be lost otherwise."""


class NewSecrets:
    """Those of a source that is not stored yet."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self.secrets = dict(secrets)

    async def read(self) -> Mapping[str, str]:
        return self.secrets

    async def exchange(self, fresh: Mapping[str, str]) -> None:
        self.secrets |= fresh


class StoredSecrets:
    """Those in the record of a source."""

    def __init__(self, opener: "SourceOpener", sources: SourceStore, record: SourceRecord) -> None:
        self._opener = opener
        self._sources = sources
        self._record = record

    async def read(self) -> Mapping[str, str]:
        self._record = await self._sources.get(*self._record.place) or self._record
        return self._opener.secrets_of(self._record)

    async def exchange(self, fresh: Mapping[str, str]) -> None:
        before, secrets = self._record, {**self._opener.secrets_of(self._record), **fresh}

        def changed(now: SourceRecord) -> SourceRecord:
            return self._opener.seal(now, secrets) if now.sealed_secrets == before.sealed_secrets else now

        for pause_s in (*_PAUSES_S, None):  # the service takes the old ones no more
            try:
                self._record = await self._sources.change(*before.place, changed) or before
            except Unavailable:
                if pause_s is None:
                    raise
                await asyncio.sleep(pause_s)
            else:
                return


class SourceOpener:
    """Knows the kinds of sources by name."""

    def __init__(
        self,
        kinds: Mapping[str, SourceKind],
        sealer: SecretSealer,
        surroundings: Surroundings,
        sources: SourceStore | None = None,
    ) -> None:
        """`sources`: where secrets are kept that a service exchanges for others."""
        self._kinds = kinds
        self._sealer = sealer
        self._surroundings = surroundings
        self._sources = sources

    def kind(self, name: str) -> SourceKind:
        """Raises BadSource."""
        if name not in self._kinds:
            known = ", ".join(sorted(self._kinds))
            raise BadSource(f"there is no kind of source {name[:40]!r}; there are: {known}")
        return self._kinds[name]

    def checked_settings(
        self, kind: SourceKind, settings: Mapping[str, str], secrets: Mapping[str, str]
    ) -> Mapping[str, str]:
        """Those that are not empty, and the kind's defaults. Raises BadSource for what the kind does not know or what it lacks,
        and UrlRefused."""
        for given, is_secret in ((settings, False), (secrets, True)):
            known = [each.name for each in kind.fields if each.is_secret is is_secret]
            if unknown := sorted(given.keys() - set(known)):
                what = "secret" if is_secret else "setting"
                there_are = ", ".join(known) or "none"
                raise BadSource(
                    f"a source of kind {kind.name} has no {what} {unknown[0][:40]!r}; there are: {there_are}"
                )
        for each in kind.fields:
            if each.is_required and not (secrets if each.is_secret else settings).get(each.name):
                raise BadSource(f"a source of kind {kind.name} needs {each.name}: {each.says}")
            if each.choices and settings.get(each.name) and settings[each.name] not in each.choices:
                raise BadSource(
                    f"{each.name} is {' or '.join(each.choices)}, not {settings[each.name][:40]!r}: {each.says}"
                )
            if each.is_url and (url := settings.get(each.name)):
                place_of(url)
        return {**kind.defaults, **{name: value for name, value in settings.items() if value}}

    def seal(self, record: SourceRecord, secrets: Mapping[str, str]) -> SourceRecord:
        """The record with these secrets, instead of those that it had."""
        given = {name: value for name, value in secrets.items() if value}
        sealed = self._sealer.seal(json.dumps(given).encode(), _place(record)) if given else b""
        return replace(record, sealed_secrets=base64.b64encode(sealed).decode(), secret_names=tuple(sorted(given)))

    def open(self, record: SourceRecord, kept: KeptSecrets | None = None) -> AbstractAsyncContextManager[SourceReader]:
        """`kept`: the secrets of a record that is not stored. Raises BadSource, SourceAway."""
        secrets = self.secrets_of(record)
        if kept is None and self._sources is not None:
            kept = StoredSecrets(self, self._sources, record)
        opening = Opening(record.tenant_id, record.settings, secrets, self._surroundings, kept)
        return self.kind(record.kind).open(opening)

    def tells_readers(self, record: SourceRecord) -> bool:
        """Whether the source says who may read a file."""
        return record.kind in self._kinds and self._kinds[record.kind].tells_readers(record.settings)

    def watch(self, record: SourceRecord) -> AsyncIterator[None] | None:
        """Tells when something has changed at the source; None where only the schedule can tell. Raises BadSource."""
        kind = self.kind(record.kind)
        if kind.watch is None:
            return None
        return kind.watch(Opening(record.tenant_id, record.settings, self.secrets_of(record), self._surroundings))

    def secrets_of(self, record: SourceRecord) -> Mapping[str, str]:
        """Raises SourceAway."""
        if not record.sealed_secrets:
            return {}
        try:
            opened = self._sealer.open(base64.b64decode(record.sealed_secrets), _place(record))
        except FailedPrecondition as error:
            raise SourceAway(
                "the secrets of the source cannot be opened any more, since the key of this service has changed; give them again"
            ) from error
        secrets: dict[str, str] = json.loads(opened)
        return secrets


def _place(record: SourceRecord) -> str:
    return f"source.{record.tenant_id}.{record.source_id}"
