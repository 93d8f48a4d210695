"""``python -m services.tools``. The processes of plain tools read this file too: what it imports at the top, each of them does."""

if __name__ == "__main__":
    from kit.process.service import run_process
    from services.tools.app import run
    from services.tools.settings import ToolsSettings

    run_process(run, ToolsSettings)
