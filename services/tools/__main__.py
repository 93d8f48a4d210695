"""``python -m services.tools``."""

from kit.service import run_process
from services.tools.app import run
from services.tools.settings import ToolsSettings

if __name__ == "__main__":
    run_process(run, ToolsSettings)
