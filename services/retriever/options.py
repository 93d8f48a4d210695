"""The numbers that the core is tuned by. `settings.py` reads them; here they are grouped by who needs them."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from services.retriever.models import FusionMethod, RerankMode, Strategy

READ_TIMEOUT_S = 5.0
"""For counting and fetching, which take milliseconds: longer than any pause of an engine that lives."""

REMOVAL_TIMEOUT_S = 60.0
"""For removing chunks and listing revisions in the background, behind whatever is being written."""


@dataclass(frozen=True)
class SearchOptions:
    """See the settings of the same names."""

    fusion: FusionMethod = FusionMethod.CONVEX
    dense_weight: float = 1.0
    lexical_weight: float = 1.0
    min_candidates: int = 60
    small_corpus_chunks: int = 500
    small_strategy: Strategy = Strategy.HYBRID
    large_corpus_chunks: int = 10_000
    noise_cosine: float | None = None
    rerank: RerankMode = RerankMode.AUTO
    rerank_depth: int = 30
    rerank_weight: float = 0.5
    rerank_budget_s: float = 2.0
    embed_timeout_s: float = 2.0
    engine_timeout_s: float = 1.0
    rerank_timeout_s: float = 2.0
    cache_bytes: int = 32_000_000
    cache_ttl_s: float = 300.0
    cache_similarity: float = 0.97


@dataclass(frozen=True)
class IndexingOptions:
    """See the settings of the same names."""

    max_concurrent_revisions: int = 32
    batch_wait_s: float = 60.0
    engine_timeout_s: float = 60.0


@dataclass(frozen=True)
class ReconcileOptions:
    """See the settings of the same names."""

    interval_s: float = 900.0
    orphan_age_s: float = 3600.0
    tombstone_life_s: float = 7 * 86_400.0


@dataclass(frozen=True)
class QdrantOptions:
    """See the settings of the same names, which begin with `qdrant_`."""

    url: str
    api_key: SecretStr | None = None
    ca_file: Path | None = None
    collection: str = "groundwork"
    shards: int | None = None
    replicas: int = 1


@dataclass(frozen=True)
class ElasticsearchOptions:
    """See the settings of the same names, which begin with `elasticsearch_`."""

    urls: tuple[str, ...]
    api_key: SecretStr | None = None
    username: str = ""
    password: SecretStr | None = None
    ca_file: Path | None = None
    index: str = "groundwork"
    shards: int = 1
    replicas: int = 1
