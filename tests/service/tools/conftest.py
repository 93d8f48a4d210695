"""The tools service in this process, with a real ingest service or a real retriever beside it."""

from tests.service.ingest.conftest import _own_metrics, system
from tests.service.retriever.conftest import address, local, models, models_address, settings

__all__ = ["_own_metrics", "address", "local", "models", "models_address", "settings", "system"]
