"""Settings of the memory service."""

from kit.process.settings import MessageStoreSettings, SigningServiceSettings


class MemorySettings(MessageStoreSettings, SigningServiceSettings):
    """Where its state lives."""
