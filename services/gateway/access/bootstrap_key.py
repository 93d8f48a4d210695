"""The bootstrap key: an API key that stands in a setting, for the one local user with every right. Looking at it asks nobody, so it
lets an operator in before there are other keys, and while the message store is silent."""

import asyncio
import hashlib
import hmac
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import structlog

from kit.access.api_keys import ApiKey, ApiKeyRevoked, ShownKey
from kit.errors import FailedPrecondition, Unauthenticated
from kit.file_source import RECHECK_AFTER_S, FileSource
from services.gateway.settings import GatewaySettings, usable_bootstrap_key

_log = structlog.get_logger()
KEY_ID = "bootstrap"
_FILE = "GROUNDWORK_BOOTSTRAP_KEY_FILE"
_NO_DIGEST = bytes(32)
"""No text has it as its SHA-256."""


class BootstrapKey:
    """The key that the settings name, if they name one. That of a file is what it holds now: none once it is gone or unusable.
    Raises FailedPrecondition for a file without a key at the start."""

    def __init__(self, settings: GatewaySettings, now: Callable[[], datetime]) -> None:
        self._digest = _digest_in(settings)
        principal = settings.local_principal()
        self.key = ApiKey(
            key_id=KEY_ID,
            name="bootstrap key",
            tenant_id=principal.tenant_id,
            subject=principal.subject,
            scopes=tuple(sorted(principal.scopes)),
            digest=b"",
            created_at=now(),
            created_by="settings",
        )
        """For whom it speaks, as other keys say it. It is in no store."""

    def shown(self, text: str) -> ShownKey | None:
        """None unless the text is the key. Takes as long for every text."""
        shown = ShownKey(KEY_ID, _digest(text))
        return shown if self._is_now(shown) else None

    async def ended(self, shown: ShownKey) -> Unauthenticated:
        """Returns why the key is not good any more, once it is not."""
        while self._is_now(shown):  # noqa: ASYNC110 - a file offers no event to wait on
            await asyncio.sleep(RECHECK_AFTER_S)
        return ApiKeyRevoked("the bootstrap key was replaced or taken away; ask an operator for the new one")

    def _is_now(self, shown: ShownKey) -> bool:
        return hmac.compare_digest(shown.digest, self._digest())


def _digest_in(settings: GatewaySettings) -> Callable[[], bytes]:
    if settings.bootstrap_key_file is not None:
        return _source(settings.bootstrap_key_file).current
    value = settings.bootstrap_key
    digest = _digest(value.get_secret_value()) if value else _NO_DIGEST
    return lambda: digest


def _source(path: Path) -> FileSource[bytes]:
    def read() -> bytes:
        return _digest(usable_bootstrap_key(path.read_text("utf-8")))

    def read_again() -> bytes:
        """Not the earlier key when there is none now: who empties the file wants it to be good for nothing."""
        try:
            return read()
        except (OSError, ValueError) as error:
            _log.error("bootstrap_key_gone", setting=_FILE, path=str(path), error=str(error))
            return _NO_DIGEST

    try:
        read()
    except (OSError, ValueError) as error:
        raise FailedPrecondition(f"{_FILE}={path} cannot be used: {error}", reason="BAD_BOOTSTRAP_KEY") from error
    return FileSource([path], read_again, setting=_FILE)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
