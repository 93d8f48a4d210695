"""Runs the model server as a process: python -m services.reranker."""

import sys

from kit.errors import GroundworkError
from kit.process.service import run_process
from services.reranker.app import run
from services.reranker.settings import RerankerSettings


def main() -> None:
    """Reads the settings and serves until a signal stops it."""
    try:
        run_process(run, RerankerSettings)
    except GroundworkError as error:
        sys.exit(f"reranker: {error.message}")


if __name__ == "__main__":
    main()
