"""The two shared systems of tests/integration, here for tests that kill and freeze parts of them."""

from tests.integration.conftest import (
    api,
    collection,
    handbook,
    library,
    mailbox,
    model_api,
    model_system,
    scripted,
    system,
    voices,
)

__all__ = [
    "api",
    "collection",
    "handbook",
    "library",
    "mailbox",
    "model_api",
    "model_system",
    "scripted",
    "system",
    "voices",
]
