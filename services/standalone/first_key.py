"""The first API key, by which all others can be made: made once, shown once. Making it needs no key, but access to the message
store as its administrator; that is also how an operator gets in again whose key is lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from pydantic import SecretStr

from kit.access.api_keys import ApiKey
from kit.errors import GroundworkError
from kit.jetstream import Nats, connect
from kit.stores.api_key_store import ApiKeyStore, bootstrap_key
from services.standalone.settings import StandaloneSettings


async def at_start(nats_url: str, settings: StandaloneSettings, say: Callable[[str], None], program: str) -> None:
    """Makes a key where callers need one, and no operator has one or finds one in the settings, and says it on the terminal, not to
    any log. What goes wrong stops nothing."""
    if settings.auth == "none" or settings.bootstrap_key or settings.bootstrap_key_file:
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
