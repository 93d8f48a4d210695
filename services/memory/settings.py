"""Settings of the memory service."""

from kit.settings import MessageStoreSettings, SigningServiceSettings


class MemorySettings(MessageStoreSettings, SigningServiceSettings):
    """Where its state lives."""
