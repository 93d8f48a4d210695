"""What every service is told from outside. Each service subclasses ServiceSettings once, in its settings.py: the only place
that reads the environment."""

from typing import Annotated, Literal

from pydantic import Field, SecretStr, StringConstraints
from pydantic_settings import BaseSettings, SettingsConfigDict

Identifier = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
"""A tenant or collection id: it becomes part of NATS subjects and of index filters, so its alphabet is small."""


class ServiceSettings(BaseSettings):
    """Settings common to all services, read from GROUNDWORK_* variables. Unknown variables are another service's."""

    model_config = SettingsConfigDict(
        env_prefix="GROUNDWORK_", frozen=True, extra="ignore", use_attribute_docstrings=True, validate_default=True
    )

    grpc_address: str = "127.0.0.1:0"
    """Where the gRPC server listens. Port 0 takes a free one. Loopback by default: nothing is exposed by accident."""

    ops_host: str = "127.0.0.1"
    """Where /metrics, /livez and /readyz listen."""

    ops_port: int = Field(default=0, ge=0, le=65535)
    """Port of /metrics, /livez and /readyz. 0 takes a free one."""

    auth_secret: SecretStr = Field(min_length=32)
    """Secret that signs principal tokens; the same for all services, at least 32 characters."""

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    """Least severe level that is logged. DEBUG may show document and query text."""

    drain_delay_s: float = Field(default=0.0, ge=0)
    """Seconds between NOT_SERVING and closing the door, for load balancers to notice. Set it to 5 in a cluster."""

    drain_grace_s: float = Field(default=10.0, ge=0)
    """Seconds that requests in flight have to end after the door is closed."""

    otlp_endpoint: str | None = None
    """OTLP/gRPC collector for traces, for example http://otel-collector:4317. Without it traces stay in the process."""
