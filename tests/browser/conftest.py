"""The console over a gateway as tests/service/gateway has it."""

from collections.abc import Iterator

import pytest

from tests.browser.site import Site, serving
from tests.browsing import browser
from tests.service.gateway.conftest import logs

__all__ = ["browser", "logs"]


@pytest.fixture
def site() -> Iterator[Site]:
    with serving() as site:
        yield site
