"""The mode of memory of a run: what its request says, else the caller's API key, else its collections."""

from collections.abc import Iterable

from groundwork.ingest.v1 import ingest_pb2

from kit.access.principal import current_principal
from kit.vocabulary.memory_modes import STRICTEST_FIRST


def memory_mode(asked: str, collections: Iterable[ingest_pb2.Collection] = ()) -> str:
    """The mode for the present caller; of several collections the one that shows least. Empty: as the service is set."""
    said = {each.memory for each in collections}
    return asked or current_principal().memory or next((mode for mode in STRICTEST_FIRST if mode in said), "")
