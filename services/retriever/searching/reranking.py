"""Reranking: whether it pays, how many candidates, and the blend of its scores with the fused ones.

"auto" reranks when there are more than 20 candidates or the best are close, and when no candidate is a direct hit. So a collection
ranks the same whenever it is asked. Only a reranker that has taken longer than the budget gets fewer passages, or none, and the
answer says so: what it takes for a passage is learned from each call. What the model server kept when it was ingested takes a
fraction of a millisecond (ADR 0008). Late interaction over the best 10 lifts nDCG@10 on SciFact from 0.735 to 0.741 and on SQuAD 2
from 0.917 to 0.937, over the best 30 no further (ADR 0006); leaving out direct hits, three of ten of SciFact's claims and four of
five questions of XQuAD, costs nothing (ADR 0020).
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice

from kit.ranking.fusion import blend_rerank
from services.retriever.indexes.chunk_encoding import citable_text
from services.retriever.indexes.engine_answer import RERANK, Stopwatch, within
from services.retriever.models import Chunk, Degradation, RerankMode, SearchPlan
from services.retriever.options import SearchOptions
from services.retriever.ports import Reranker
from services.retriever.searching.engines import Trace
from services.retriever.searching.ranking import Ranking

_MANY_CANDIDATES = 20
_CLOSE = 0.05
_CLEAR_LEAD = 0.2
"""Shares of the best fused score by which the second is below it: two candidates are close, or one is clearly ahead. From 0.15 to
never leaving a direct hit out nDCG@10 is the same, below it falls: SciFact's 809 training claims 0.7431 at 0.05 and 0.7443 at 0.2,
XQuAD 0.9779 and 0.9784 within eight languages, 0.9325 and 0.9332 across seven pairs (docs/adr/0020)."""
_LEAST_DEPTH = 5
"""Fewer are not worth the call; also how many are tried when it is not known any more what a passage takes."""
_CUT = "RERANK_CUT"
_PROBE_INTERVAL_S = 60.0
_BUDGET_SHARE = 0.7
"""Of the budget that is planned with: a machine has other work, too."""
_LEARNING_RATE = 0.3
_LATE = 0.9
"""Of the time limit, from which a failure is one of time: the other side has the same limit, less what the way takes."""


@dataclass(frozen=True)
class Reranked:
    """The final ranking, the reranker's own scores where it was asked, and why it was or was not."""

    ranking: dict[str, float]
    scores: Mapping[str, float]
    reason: str


class RerankStage:
    """Asks the reranker when the plan wants it or it pays, and knows how fast it is."""

    def __init__(
        self, reranker: Reranker, options: SearchOptions, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._reranker = reranker
        self._options = options
        self._clock = clock
        self._passage_s: float | None = None
        self._learned_at_s = 0.0

    async def run(
        self, query_text: str, fused: dict[str, float], ranking: Ranking, plan: SearchPlan, trace: Trace
    ) -> Reranked:
        """The fused ranking as it is when reranking does not pay or fails; the latter is a degradation."""
        reason = self._why_not(fused, ranking, plan)
        depth = min(plan.rerank_depth, len(fused))
        is_auto = plan.rerank is RerankMode.AUTO
        if is_auto and not reason:
            wanted, depth = depth, self._affordable_depth(depth)
            reason = (
                f"skipped: too slow here for the budget of {self._options.rerank_budget_s:g} s" if depth < 2 else ""
            )
            if depth < wanted:
                trace.degraded.append(self._cut(depth, wanted))
        if reason:
            return Reranked(fused, {}, reason)
        timeout_s = self._options.rerank_budget_s if is_auto else self._options.rerank_timeout_s
        chunks = {chunk_id: ranking.chunk(chunk_id) for chunk_id in islice(fused, depth)}
        watch = Stopwatch()
        answer = await within(self._scores(query_text, chunks, timeout_s), RERANK, timeout_s)
        elapsed_s = watch.lap_ms() / 1000
        trace.timings_ms["rerank"] = elapsed_s * 1000
        if not isinstance(answer, Degradation):
            self._learn(elapsed_s / depth)
            why = "many candidates or close scores" if is_auto else "wanted by the request or the settings"
            blended = blend_rerank(fused, answer, self._options.rerank_weight)
            return Reranked(blended, answer, f"reranked {depth}: {why}")
        if elapsed_s >= _LATE * timeout_s:
            self._learn_too_slow(elapsed_s / depth)
        trace.degraded.append(answer)
        return Reranked(fused, {}, "failed: hits are in fused order")

    async def _scores(self, query_text: str, chunks: Mapping[str, Chunk], timeout_s: float) -> dict[str, float]:
        passages = [citable_text(chunk) for chunk in chunks.values()]
        content_hashes = [chunk.content_hash for chunk in chunks.values()]
        scores = await self._reranker.rerank(query_text, passages, timeout_s, content_hashes)
        return dict(zip(chunks, scores, strict=True))

    def _why_not(self, fused: Mapping[str, float], ranking: Ranking, plan: SearchPlan) -> str:
        """Why reranking is skipped whatever it costs; empty when it is not."""
        if plan.rerank is RerankMode.OFF:
            return "skipped: switched off"
        if len(fused) < 2 or plan.rerank_depth < 2:
            return "skipped: there is nothing to reorder"
        if plan.rerank is RerankMode.ON:
            return ""
        lead = _lead(fused)
        if ranking.is_first_everywhere(next(iter(fused))) and lead >= _CLEAR_LEAD:
            return "skipped: the best hit is first in both engines and clearly ahead"
        if len(fused) <= _MANY_CANDIDATES and lead > _CLOSE:
            return "skipped: few candidates, and their scores are not close"
        return ""

    def _cut(self, depth: int, wanted: int) -> Degradation:
        done = f"reranked only {depth}" if depth else "reranked none"
        budget = f"GROUNDWORK_RETRIEVER_RERANK_BUDGET_S ({self._options.rerank_budget_s:g})"
        return Degradation(
            RERANK.name, _CUT, f"{done} of {wanted} passages: more do not fit into {budget} on this machine"
        )

    def _affordable_depth(self, wanted: int) -> int:
        """How many of the passages fit into the budget; 0 when they are too few to be worth it."""
        if self._passage_s is None:
            return wanted
        fitting = min(int(_BUDGET_SHARE * self._options.rerank_budget_s / self._passage_s), wanted)
        if fitting >= min(_LEAST_DEPTH, wanted):
            return fitting
        is_old = self._clock() - self._learned_at_s >= _PROBE_INTERVAL_S
        return min(_LEAST_DEPTH, wanted) if is_old else 0

    def _learn(self, passage_s: float) -> None:
        known = self._passage_s if self._passage_s is not None else passage_s
        self._passage_s = max(known + _LEARNING_RATE * (passage_s - known), 1e-6)
        self._learned_at_s = self._clock()

    def _learn_too_slow(self, passage_s: float) -> None:
        """A call that was cut off only says that it takes longer: twice as long is assumed."""
        self._passage_s = 2 * passage_s
        self._learned_at_s = self._clock()


def _lead(fused: Mapping[str, float]) -> float:
    """By how much the best is ahead of the second, as a share of the best score."""
    first, second = islice(fused.values(), 2)
    return (first - second) / first if first > 0 else 0.0
