"""``python -m services.memory``."""

from kit.process.service import run_process
from services.memory.app import run
from services.memory.settings import MemorySettings

if __name__ == "__main__":
    run_process(run, MemorySettings)
