"""A real ingest service and a real retriever beside the tools."""

from tests.service.ingest.conftest import _own_metrics, system
from tests.service.retriever.conftest import address, local, models, models_address, settings

__all__ = ["_own_metrics", "address", "local", "models", "models_address", "settings", "system"]
