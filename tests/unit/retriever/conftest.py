"""Fixtures of the retriever's unit tests."""

from __future__ import annotations

import pytest

from tests.unit.retriever.core_over_fakes import Core


@pytest.fixture
def core() -> Core:
    return Core()
