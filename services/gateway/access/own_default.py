"""What a caller means by `default`: the collection that they have without making it. Its id is another one for each subject, and
that is the one that answers carry."""

from collections.abc import Sequence

from kit.access.principal import current_principal
from kit.stores.collections import DEFAULT_ID, FILES_ID, own_id
from services.gateway.backends import Backends


def meant(services: Backends, collection_id: str) -> str:
    """The id of the collection that the present caller means. Every id in a path, a query or a body goes through this."""
    if collection_id != DEFAULT_ID:
        return collection_id
    return own_id(DEFAULT_ID, current_principal(), services.settings.local_principal())


def all_meant(services: Backends, collection_ids: Sequence[str]) -> list[str]:
    """As `meant`, for several, each once."""
    return list(dict.fromkeys(meant(services, each) for each in collection_ids))


def own_files(services: Backends) -> str:
    """The id of the collection that keeps the files which the present caller uploads by OpenAI's API."""
    return own_id(FILES_ID, current_principal(), services.settings.local_principal())
