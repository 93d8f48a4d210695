"""Runs the retriever as a process: python -m services.retriever."""

from kit.process.service import run_process
from services.retriever.app import run
from services.retriever.settings import RetrieverSettings

if __name__ == "__main__":
    run_process(run, RetrieverSettings)
