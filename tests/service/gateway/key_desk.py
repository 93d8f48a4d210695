"""Keys for tests, made where the gateway finds them."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from kit.access.api_keys import new_key
from kit.access.principal import OPERATOR
from kit.jetstream import Nats
from kit.stores.api_key_store import ApiKeyStore


@dataclass
class KeyDesk:
    """Makes keys without asking a gateway."""

    store: ApiKeyStore
    issued: int = 0
    """Keys so far. Each is a millisecond younger than the one before: lists are in the order of their making."""

    @classmethod
    async def open(cls, nats: Nats) -> "KeyDesk":
        return cls(await ApiKeyStore.open(nats))

    async def issue(
        self, *scopes: str, subject: str = "olga", tenant_id: str = "acme", key_id: str = "", **changes: Any
    ) -> str:
        """A key's text. With no scopes an operator's."""
        self.issued += 1
        key, text = new_key(
            name=f"key of {subject}",
            tenant_id=tenant_id,
            subject=subject,
            scopes=scopes or (OPERATOR,),
            created_at=datetime.now(UTC) + timedelta(milliseconds=self.issued),
            created_by="test",
            key_id=key_id,
            **changes,
        )
        await self.store.create(key)
        return text.get_secret_value()


def bearer(text: str) -> dict[str, str]:
    """The header that shows a key."""
    return {"Authorization": f"Bearer {text}"}


def id_of(text: str) -> str:
    return text.split("_")[1]
