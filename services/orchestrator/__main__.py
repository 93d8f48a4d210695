"""`python -m services.orchestrator`: runs the orchestrator with settings from the environment."""

from kit.process.service import run_process
from services.orchestrator.app import run
from services.orchestrator.settings import OrchestratorSettings

if __name__ == "__main__":
    run_process(run, OrchestratorSettings)
