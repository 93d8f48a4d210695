"""The console over a gateway as tests/service/gateway has it."""

from tests.service.gateway.conftest import logs

__all__ = ["logs"]
