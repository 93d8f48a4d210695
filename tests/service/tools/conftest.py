"""The tools service in this process, with a real ingest service beside it."""

from tests.service.ingest.conftest import _own_metrics, system

__all__ = ["_own_metrics", "system"]
