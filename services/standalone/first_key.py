"""The first API key, by which all others can be made: made once, shown once. Making it needs no key, but access to the message
store as its administrator; that is also how an operator gets in again whose key is lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from pydantic import SecretStr

from kit.api_key_store import ApiKeyStore, bootstrap_key
from kit.api_keys import ApiKey
from kit.errors import GroundworkError
from kit.hosts import is_loopback_name
from kit.jetstream import Nats, connect
from services.standalone.errors import StartRefused
from services.standalone.settings import StandaloneSettings


def require_keys(settings: StandaloneSettings, address: str) -> None:
    """Raises StartRefused where others than this machine would reach the API and nobody would ask them for a key. The gateways
    refuse that too, but only once everything else has been started."""
    if settings.auth == "none" and not is_loopback_name(address):
        raise StartRefused(
            f"The HTTP API would listen on {address}, where others than this machine reach it, and ask nobody who they are. Set "
            "GROUNDWORK_AUTH=api_keys, with which the start makes a first key, or listen on loopback only: "
            "GROUNDWORK_HOST=127.0.0.1"
        )


async def at_start(nats_url: str, settings: StandaloneSettings, say: Callable[[str], None], program: str) -> None:
    """Makes a key where callers need one and no operator has one, and says it on the terminal, not to any log. What goes wrong
    stops nothing."""
    if settings.auth == "none":
        return
    try:
        async with connect(nats_url, name="supervisor") as nats:
            text = await make(nats, settings, another=False)
    except GroundworkError as error:
        say(f"  No first API key was made: {error.message}. Make one with: {program} keys bootstrap")
        return
    if text:
        say(
            f"\n  The first API key, shown only now:\n\n      {text.get_secret_value()}\n\n"
            f"  Commands take it from GROUNDWORK_API_KEY, the console asks for it. More keys: {program} keys create\n"
        )


async def make(nats: Nats, settings: StandaloneSettings, *, another: bool) -> SecretStr | None:
    """An operator's key, unless there is one by which an operator gets in: then None. `another`: in any case."""
    store = await ApiKeyStore.open(nats)

    def key() -> tuple[ApiKey, SecretStr]:
        return bootstrap_key(settings.local_tenant_id, settings.local_subject, datetime.now(UTC))

    if not another:
        return await store.create_first_operator(key)
    made, text = key()
    await store.create(made)
    return text
