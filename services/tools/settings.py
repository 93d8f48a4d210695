"""Settings of the tools service."""

from pydantic import Field

from kit.settings import ServiceSettings


class ToolsSettings(ServiceSettings):
    """How much it does at once."""

    tools_calls_at_once: int = Field(default=8, ge=1)
    """Tool calls that run beside each other. Most wait for something; 8 keep a small machine from being swamped."""
    tools_calls_waiting: int = Field(default=64, ge=0)
    """Calls that may wait for their turn. More are turned away at once, since they would only run into their deadlines."""
