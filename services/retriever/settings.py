"""The retriever's settings: the only place where it reads its environment."""

from pathlib import Path

from pydantic import Field

from kit.settings import ServiceSettings
from services.retriever.models import FusionMethod
from services.retriever.options import IndexingOptions, ReconcileOptions, SearchOptions


class RetrieverSettings(ServiceSettings):
    """Read from GROUNDWORK_* variables."""

    nats_url: str = "nats://127.0.0.1:4222"
    """NATS servers, several by comma: where the pointers of active revisions are kept."""

    reranker_address: str = "127.0.0.1:7001"
    """The model server, host:port: embeds queries and reranks."""

    data_dir: Path = Path("data")
    """Folder of everything durable; the indexes lie in its `retriever` folder."""

    retriever_fusion: FusionMethod = FusionMethod.RRF
    """How the engines' lists become one when a request does not say: "rrf" or "convex". RRF needs no tuning per corpus."""

    retriever_dense_weight: float = Field(default=1.0, ge=0)
    """Weight of the dense lists in the fusion."""

    retriever_lexical_weight: float = Field(default=1.0, ge=0)
    """Weight of the lexical lists in the fusion."""

    retriever_min_candidates: int = Field(default=50, ge=10, le=1000)
    """Candidates that each engine is asked for at least; five times top_k when that is more. Fusion gains little beyond."""

    retriever_rerank: bool = False
    """Whether to rerank when a request does not say. Off: late interaction over 30 passages costs a laptop 100s of ms."""

    retriever_rerank_depth: int = Field(default=30, ge=1, le=200)
    """Candidates that are reranked. What ranks below the 30th after fusion is rarely wanted."""

    retriever_rerank_weight: float = Field(default=0.3, ge=0, le=1)
    """Share of the reranker's score in the final one, both min-max normalised. A small reranker corrects, not decides."""

    retriever_embed_timeout_s: float = Field(default=2.0, gt=0)
    """Seconds a query's embedding may take before the search goes on without the dense engine. It takes 5-8 ms idle; the
    slack is for a model server that is embedding documents."""

    retriever_engine_timeout_s: float = Field(default=1.0, gt=0)
    """Seconds an engine may take before the search goes on without it. It takes 1-4 ms at 10 000 chunks."""

    retriever_rerank_timeout_s: float = Field(default=2.0, gt=0)
    """Seconds reranking may take before hits are returned in fused order."""

    retriever_max_concurrent_revisions: int = Field(default=8, ge=1)
    """Revisions written at a time; more wait. Each holds one batch in memory."""

    retriever_batch_wait_s: float = Field(default=60.0, gt=0)
    """Seconds to wait for the next batch of a revision before its stream is given up."""

    retriever_write_timeout_s: float = Field(default=60.0, gt=0)
    """Seconds that writing a batch, or committing a revision, may take."""

    retriever_lexical_heap_bytes: int = Field(default=64_000_000, ge=15_000_000)
    """Memory of the tantivy writer before it spills a segment. tantivy needs 15 MB at least."""

    retriever_reconcile_interval_s: float = Field(default=900.0, gt=0)
    """Seconds between searches for chunks that a crash left behind."""

    retriever_orphan_age_s: float = Field(default=3600.0, gt=0)
    """Age from which chunks of a revision that was never activated are removed: longer than any ingestion job takes."""

    retriever_resync_s: float = Field(default=300.0, gt=0)
    """Seconds after which all pointers are read again, should a broken connection have swallowed a change."""

    @property
    def index_dir(self) -> Path:
        """Where the indexes lie."""
        return self.data_dir / "retriever"

    @property
    def search(self) -> SearchOptions:
        return SearchOptions(
            fusion=self.retriever_fusion,
            dense_weight=self.retriever_dense_weight,
            lexical_weight=self.retriever_lexical_weight,
            min_candidates=self.retriever_min_candidates,
            rerank_by_default=self.retriever_rerank,
            rerank_depth=self.retriever_rerank_depth,
            rerank_weight=self.retriever_rerank_weight,
            embed_timeout_s=self.retriever_embed_timeout_s,
            engine_timeout_s=self.retriever_engine_timeout_s,
            rerank_timeout_s=self.retriever_rerank_timeout_s,
        )

    @property
    def indexing(self) -> IndexingOptions:
        return IndexingOptions(
            max_concurrent_revisions=self.retriever_max_concurrent_revisions,
            batch_wait_s=self.retriever_batch_wait_s,
            engine_timeout_s=self.retriever_write_timeout_s,
        )

    @property
    def reconcile(self) -> ReconcileOptions:
        return ReconcileOptions(
            interval_s=self.retriever_reconcile_interval_s, orphan_age_s=self.retriever_orphan_age_s
        )
