"""The collection `default`, which each caller has without making it. Answers carry its real id, which differs by subject."""

from collections.abc import Sequence

from kit.access.principal import current_principal
from kit.stores.collections import DEFAULT_ID, FILES_ID, own_id
from services.gateway.backends import Backends


def resolve_collection_id(services: Backends, collection_id: str) -> str:
    """Resolves `default` to the caller's own collection. Every id in a path, a query or a body goes through this function."""
    if collection_id != DEFAULT_ID:
        return collection_id
    return own_id(DEFAULT_ID, current_principal(), services.settings.local_principal())


def resolve_collection_ids(services: Backends, collection_ids: Sequence[str]) -> list[str]:
    """Resolves several ids, each once."""
    return list(dict.fromkeys(resolve_collection_id(services, each) for each in collection_ids))


def own_files(services: Backends) -> str:
    """The id of the collection that keeps the files which the present caller uploads by OpenAI's API."""
    return own_id(FILES_ID, current_principal(), services.settings.local_principal())
