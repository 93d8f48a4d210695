"""Runs the gateway."""

from kit.process.service import run_process
from services.gateway.app import run
from services.gateway.settings import GatewaySettings


def main() -> None:
    """Reads the settings and serves until a signal stops it."""
    run_process(run, GatewaySettings)


if __name__ == "__main__":
    main()
