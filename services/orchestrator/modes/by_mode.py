"""Which worker takes a run to its end."""

from services.orchestrator.log.events import RunMode, RunStatus
from services.orchestrator.log.journal import Journal
from services.orchestrator.models import RunRecord
from services.orchestrator.runs.execution import Worker


class ByMode:
    """A worker that leaves each run to that of its mode."""

    def __init__(self, documents: Worker, chat: Worker) -> None:
        """`documents` runs the modes qa and grounded."""
        self._documents = documents
        self._chat = chat

    async def run(self, record: RunRecord, journal: Journal) -> RunStatus:
        worker = self._chat if record.request.mode is RunMode.CHAT else self._documents
        return await worker.run(record, journal)
