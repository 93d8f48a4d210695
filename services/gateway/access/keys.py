"""What a gateway that asks for API keys has besides its routes: the ring of keys, the store behind it once NATS answers, and the
notes of when a key was last used."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import structlog

from kit.access.api_keys import ApiKey
from kit.errors import GroundworkError
from kit.jetstream import Nats, connect
from kit.process.waiting import FailureLogLimit
from kit.stores.api_key_store import ApiKeyStore
from services.gateway.access.audit_recorder import AuditRecorder
from services.gateway.access.auth import KeyDoor
from services.gateway.access.bootstrap_key import BootstrapKey
from services.gateway.access.directory.members import DirectoryMembers
from services.gateway.access.directory.people import Naming
from services.gateway.access.guests.door import GuestDoor
from services.gateway.access.key_ring import ApiKeysUnknown, KeyRing
from services.gateway.access.oidc.door import IssuerDoor
from services.gateway.access.oidc.issuers import Issuers
from services.gateway.serving.rate_limiter import RateLimiter
from services.gateway.serving.request_limits import RequestLimits
from services.gateway.settings import GatewaySettings

_log = structlog.get_logger()
_RETRY_S = 1.0
_USE_NOTED_EVERY_S = 60.0
"""Of one key by this gateway: a last use is known to the minute."""
_FLUSH_EVERY_S = 5.0
_FORGET_EVERY_S = 3600.0


class LastUses:
    """Notes when keys are used: kept in memory and written behind the requests' backs; what a crash takes along is a minute."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._noted: dict[str, datetime] = {}
        self._waiting: dict[str, tuple[ApiKey, datetime]] = {}

    def used(self, key: ApiKey) -> None:
        """The key opened the door just now."""
        now = self._now()
        noted = self._noted.get(key.key_id)
        if noted is None or abs((now - noted).total_seconds()) >= _USE_NOTED_EVERY_S:
            self._noted[key.key_id] = now
            self._waiting[key.key_id] = (key, now)

    async def flush(self, store: ApiKeyStore) -> None:
        """Writes what is waiting. What cannot be written now is written later. Raises Unavailable."""
        while self._waiting:
            key_id, (key, at) = next(iter(self._waiting.items()))
            await store.note_use(key, at)
            if self._waiting.get(key_id) == (key, at):
                del self._waiting[key_id]


class Keys:
    """The keys of the installation. `now` is the time of day, `clock` counts seconds."""

    def __init__(self, settings: GatewaySettings, *, now: Callable[[], datetime], clock: Callable[[], float]) -> None:
        self.now = now
        self.per_tenant = settings.api_keys_per_tenant
        self.ring = KeyRing(stale_after_s=settings.api_keys_stale_after_s, now=now, clock=clock)
        self.requests = RequestLimits(now, clock)
        self._uses = LastUses(now)
        self._settings = settings
        self._store: ApiKeyStore | None = None
        self.audit = AuditRecorder(retention_days=settings.audit_retention_days, max_bytes=settings.audit_max_bytes)
        path = settings.oidc_issuers_file
        self.issuers = IssuerDoor(Issuers(path), now=lambda: now().timestamp(), clock=clock) if path else None
        """Who comes in by an OIDC issuer; None where none is listed."""
        self.guest_door = GuestDoor(settings, lambda: now().timestamp(), clock)
        """All guests. Those who came earlier are swept also where guests are no longer let in."""
        self.guests = self.guest_door if settings.guests else None
        """People without an account; None where none are let in."""
        self.members = DirectoryMembers(
            Naming(settings.scim_subject), staleness_s=settings.api_keys_stale_after_s, clock=clock
        )
        """Whom identity providers have sent by SCIM."""
        self.door = KeyDoor(
            self.ring,
            RateLimiter(settings.wrong_api_keys_per_minute, clock),
            settings.proxies,
            begun_logins=RateLimiter(settings.begun_logins_per_minute, clock),
            latest_revision=self._latest_revision,
            used=self._uses.used,
            bootstrap=BootstrapKey(settings, now),
            by_issuer=self.issuers,
            guests=self.guests,
            members=self.members,
        )

    @property
    def store(self) -> ApiKeyStore:
        """Raises ApiKeysUnknown before the message store has answered for the first time."""
        if self._store is None:
            raise ApiKeysUnknown(
                "API keys cannot be read or changed yet: the message store does not answer; try again in a few seconds"
            )
        return self._store

    async def run(self) -> None:
        """Connects, waiting for a message store that is not up yet, and keeps up with it until cancelled."""
        settings = self._settings
        tls = settings.nats_tls(settings.nats_url)
        async with connect(settings.nats_url, name="gateway", replicas=settings.nats_replicas, tls=tls) as nats:
            self._store = store = await self._opened(nats)
            async with asyncio.TaskGroup() as group:
                group.create_task(self.requests.run(nats))
                group.create_task(self.ring.follow(store))
                group.create_task(self._note_uses(store))
                group.create_task(self._forget_ended(store))
                group.create_task(self.audit.run(nats))
                group.create_task(self.members.run(nats))
                group.create_task(self.guest_door.run(nats))
                if self.issuers is not None:
                    group.create_task(self.issuers.run(nats))

    async def _opened(self, nats: Nats) -> ApiKeyStore:
        complaints = FailureLogLimit()
        while True:
            try:
                return await ApiKeyStore.open(nats)
            except GroundworkError as error:
                if complaints.is_due():
                    _log.warning("api_keys_not_opened", error=error.message)
                await asyncio.sleep(_RETRY_S)

    async def _note_uses(self, store: ApiKeyStore) -> None:
        while True:
            await asyncio.sleep(_FLUSH_EVERY_S)
            try:
                await self._uses.flush(store)
            except GroundworkError as error:
                _log.debug("api_key_uses_not_noted", error=error.message)

    async def _forget_ended(self, store: ApiKeyStore) -> None:
        while True:
            await asyncio.sleep(_FORGET_EVERY_S)
            try:
                await self.forget_ended(store)
            except GroundworkError as error:
                _log.debug("api_keys_not_forgotten", error=error.message)

    async def forget_ended(self, store: ApiKeyStore) -> None:
        """Removes the records of keys that ended long ago. Raises Unavailable."""
        now = self.now()
        for key in self.ring.all():
            ended_at = key.ended_at(now)
            if ended_at is not None and now - ended_at > timedelta(days=self._settings.ended_api_keys_kept_days):
                await store.forget(key)

    async def _latest_revision(self) -> int:
        return await self.store.last_revision()
