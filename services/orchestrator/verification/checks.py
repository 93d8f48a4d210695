"""How the answers of a run are checked: by which judges, what becomes of claims that fail, and where claims are searched for."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from services.orchestrator.log.events import Evidence
from services.orchestrator.models import RunRecord, SearchQuery
from services.orchestrator.modes.threads import forgotten_documents
from services.orchestrator.ports import RunSources, Searcher
from services.orchestrator.steps.run import Run
from services.orchestrator.verification.actions import effects_of
from services.orchestrator.verification.checking import AnswerCheck
from services.orchestrator.verification.judges import ClaimJudge, WordJudge
from services.orchestrator.verification.verdicts import Verify

_TOP_K = 3


@dataclass(frozen=True)
class Checks:
    """Makes the check of each run. Without a searcher no claim is searched for."""

    judges: Sequence[ClaimJudge] = (WordJudge(),)
    verify: Verify = Verify.MARK
    """For requests that do not say."""
    searcher: Searcher | None = None
    sources: RunSources | None = None

    def of(self, run: Run, record: RunRecord, evidence: Sequence[Evidence]) -> AnswerCheck:
        """The check of an answer from this evidence."""
        collections = record.request.collection_ids or sorted(
            {each.collection_id for each in evidence if each.collection_id}
        )  # none where all evidence is of the web: there is nothing to search then
        can_search = self.searcher is not None and self.sources is not None and evidence and collections
        return AnswerCheck(
            [judge for judge in self.judges if judge.is_there] or [WordJudge()],
            Verify(record.request.verify or self.verify),
            partial(self._find, run, record, collections) if can_search else None,
            partial(effects_of, run.journal.progress),
            partial(_require_model, run),
        )

    async def _find(self, run: Run, record: RunRecord, collections: Sequence[str], claim: str) -> Sequence[Evidence]:
        """The best passages for the claim, where the run may look and without what was forgotten."""
        assert self.searcher is not None
        assert self.sources is not None
        query = SearchQuery((claim,), tuple(collections), record.request.document_ids, _TOP_K)
        found = await self.searcher.search(query.narrowed_to(record.request.filter))
        forgotten = await forgotten_documents(run, record, self.sources, found.evidence)
        return [each for each in found.evidence if each.document_id not in forgotten]


def _require_model(run: Run) -> None:
    run.budgets.require_time()
    run.budgets.require_model()
