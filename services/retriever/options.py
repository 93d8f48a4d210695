"""The numbers that the core is tuned by. `settings.py` reads them; here they are grouped by who needs them."""

from dataclasses import dataclass

from services.retriever.models import FusionMethod

READ_TIMEOUT_S = 5.0
"""For counting and fetching, which take milliseconds: longer than any pause of an engine that lives."""

REMOVAL_TIMEOUT_S = 60.0
"""For removing chunks and listing revisions in the background, behind whatever is being written."""


@dataclass(frozen=True)
class SearchOptions:
    """See the settings of the same names."""

    fusion: FusionMethod = FusionMethod.RRF
    dense_weight: float = 1.0
    lexical_weight: float = 1.0
    min_candidates: int = 50
    rerank_by_default: bool = False
    rerank_depth: int = 30
    rerank_weight: float = 0.3
    embed_timeout_s: float = 2.0
    engine_timeout_s: float = 1.0
    rerank_timeout_s: float = 2.0


@dataclass(frozen=True)
class IndexingOptions:
    """See the settings of the same names."""

    max_concurrent_revisions: int = 8
    batch_wait_s: float = 60.0
    engine_timeout_s: float = 60.0


@dataclass(frozen=True)
class ReconcileOptions:
    """See the settings of the same names."""

    interval_s: float = 900.0
    orphan_age_s: float = 3600.0
