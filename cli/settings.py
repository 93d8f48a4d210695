"""Where the server is: the only reader of the environment in the CLI."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class CliSettings(BaseSettings):
    """Read from GROUNDWORK_* variables."""

    model_config = SettingsConfigDict(
        env_prefix="GROUNDWORK_", frozen=True, extra="ignore", use_attribute_docstrings=True
    )

    url: str = ""
    """Address of the HTTP API, for example http://127.0.0.1:8080. Empty means this machine at `port`."""

    port: int = Field(default=8080, ge=1, le=65535)
    """Port of the HTTP API on this machine, when no `url` is given."""

    api_key: SecretStr = SecretStr("")
    """API key, sent with every request, where the server asks for one. Better here than on the command line, which others see."""

    data_dir: Path = Path("data")
    """Data directory of the system on this machine: its keys lie there."""

    @property
    def base_url(self) -> str:
        """The address that is asked."""
        return self.url.rstrip("/") or f"http://127.0.0.1:{self.port}"
