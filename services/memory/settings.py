"""Settings of the memory service."""

from kit.settings import SigningServiceSettings


class MemorySettings(SigningServiceSettings):
    """Where its state lives."""

    nats_url: str = "nats://127.0.0.1:4222"
    """NATS server, with credentials in the URL where it asks for them."""
