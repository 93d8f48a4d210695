"""Starts one of the two ingest processes: `python -m services.ingest api` or `python -m services.ingest worker`."""

import sys

from kit.process.service import run_process
from services.ingest.app import run_api, run_worker
from services.ingest.settings import IngestSettings

_PROCESSES = {"api": run_api, "worker": run_worker}


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1] not in _PROCESSES:
        sys.exit("usage: python -m services.ingest {api|worker}")
    run_process(_PROCESSES[sys.argv[1]], IngestSettings)


if __name__ == "__main__":
    main()
