"""The renderings that the mutations change are those of tests/chart."""

from tests.chart.conftest import helm, releases, rendered, shared_folder

__all__ = ["helm", "releases", "rendered", "shared_folder"]
