"""The retriever's settings: the only place where it reads its environment."""

from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, FilePath, SecretStr, field_validator, model_validator

from kit.process.settings import Identifier, MessageStoreSettings, SigningServiceSettings
from services.retriever.models import FusionMethod, RerankMode, Strategy
from services.retriever.options import (
    ElasticsearchOptions,
    IndexingOptions,
    QdrantOptions,
    ReconcileOptions,
    SearchOptions,
)

_MEMORIES_HEAP_BYTES = 15_000_000
"""What tantivy needs at least: a few texts come at a time."""


class RetrieverSettings(MessageStoreSettings, SigningServiceSettings):
    """Read from GROUNDWORK_* variables."""

    reranker_address: str = "127.0.0.1:7001"
    """The model server, host:port: embeds queries and reranks."""

    data_dir: Path = Path("data")
    """Folder of everything durable; the indexes lie in its `retriever` folder."""

    qdrant_url: str | None = None
    """Qdrant server that holds the vectors, for example https://qdrant:6333. Unset: the Qdrant engine in this process, for one
    machine."""

    qdrant_api_key: SecretStr | None = None
    """API key of the Qdrant server, if it wants one."""

    qdrant_ca_file: FilePath | None = None
    """Certificates (PEM) that the Qdrant server's is checked against, when no public authority has signed it."""

    qdrant_collection: Identifier = "groundwork"
    """Alias of the collection in use; collections are named after it and the embedding model. Several systems may share a server
    under different names."""

    qdrant_shards: int | None = Field(default=None, ge=1, le=1024)
    """Shards of a collection when it is created. Unset: one on a single server, one for each node of a cluster."""

    qdrant_replicas: int = Field(default=1, ge=1, le=16)
    """Copies of each shard when a collection is created. 2 or more survive the loss of a node."""

    elasticsearch_url: str | None = None
    """Elasticsearch nodes that hold the text, several by comma, each with its port: https://es:9200. Unset: tantivy in this
    process, for one machine."""

    elasticsearch_api_key: SecretStr | None = None
    """API key of Elasticsearch, in its encoded form. Preferred to a username."""

    elasticsearch_username: str = ""
    """User of Elasticsearch, with `elasticsearch_password`, where there is no API key."""

    elasticsearch_password: SecretStr | None = None
    """Password of that user."""

    elasticsearch_ca_file: FilePath | None = None
    """Certificates (PEM) that Elasticsearch's is checked against, when no public authority has signed it."""

    elasticsearch_index: Identifier = "groundwork"
    """Alias of the index in use. Several systems may share a cluster under different names."""

    elasticsearch_shards: int = Field(default=1, ge=1, le=1024)
    """Primary shards of the index when it is created. A tenant lies in one shard; Elastic advises 10 to 50 GB each."""

    elasticsearch_replicas: int = Field(default=1, ge=0, le=16)
    """Copies of each shard besides the primary when the index is created. 0 on a single node."""

    retriever_fusion: FusionMethod = FusionMethod.CONVEX
    """How the engines' lists become one when a request does not say: "rrf" or "convex". Convex was better on every collection
    that was measured (ADR 0006); RRF looks at ranks only, for engines whose scores mean little."""

    retriever_dense_weight: float = Field(default=1.0, ge=0)
    """Weight of the dense lists in the fusion. For chunks in another language than the question words count a tenth in any case,
    unless the request gives weights (ADR 15)."""

    retriever_lexical_weight: float = Field(default=1.0, ge=0)
    """Weight of the lexical lists in the fusion."""

    retriever_min_candidates: int = Field(default=60, ge=10, le=1000)
    """Candidates that each engine is asked for at least; five times top_k when that is more. Fusion gains little beyond."""

    retriever_small_corpus_chunks: int = Field(default=500, ge=0)
    """Chunks below which collections are small: five hits unless a request says otherwise."""

    retriever_small_strategy: Strategy = Strategy.HYBRID
    """Engines for small collections: "hybrid", "dense" or "lexical". Vectors alone lose names and numbers (ADR 0006)."""

    retriever_large_corpus_chunks: int = Field(default=10_000, ge=0)
    """Chunks above which collections are large: the best 20 are reranked, not the best 30."""

    retriever_noise_cosine: float | None = Field(default=None, ge=-1, le=1)
    """Least cosine of a hit that vectors alone found; what is below is noise and left out. Unset: measured for the models that come
    with the system, by language for multilingual-e5-small (0.377 for English, 0.117 across languages), 0.25 for all-MiniLM-L6-v2;
    no threshold for others, nor where a request wants vectors alone. -1 switches it off."""

    retriever_rerank: RerankMode = RerankMode.AUTO
    """Whether to rerank when a request does not say: "on", "off", or "auto", which does so when there are many candidates or
    close scores and no direct hit."""

    retriever_rerank_depth: int = Field(default=30, ge=1, le=200)
    """Candidates that are reranked. What ranks below the 30th after fusion is rarely wanted."""

    retriever_rerank_weight: float = Field(default=0.5, ge=0, le=1)
    """Share of the reranker's score in the final one, both min-max normalised. A small reranker corrects, not decides: with late
    interaction 0.3 to 0.6 are a plateau for English (ADR 20)."""

    retriever_embed_timeout_s: float = Field(default=2.0, gt=0)
    """Seconds a query's embedding may take before the search goes on without the dense engine. It takes 5-8 ms idle; the
    slack is for a model server that is embedding documents."""

    retriever_engine_timeout_s: float = Field(default=1.0, gt=0)
    """Seconds an engine may take before the search goes on without it. It takes 1-4 ms at 10 000 chunks."""

    retriever_rerank_budget_s: float = Field(default=2.0, gt=0)
    """Seconds that "auto" may spend on reranking. Late interaction over 30 passages that were kept when they were ingested takes 5
    to 20 ms, over others 0.8 s on two idle cores: the default leaves room for two busy ones. Fewer passages are reranked where
    more do not fit, and the answer says so (`degraded`)."""

    retriever_rerank_timeout_s: float = Field(default=2.0, gt=0)
    """Seconds reranking may take before hits are returned in fused order."""

    retriever_cache_bytes: int = Field(default=32_000_000, ge=0)
    """Memory for answers that are remembered until their collections change. 0 switches caching off."""

    retriever_cache_ttl_s: float = Field(default=300.0, gt=0)
    """Seconds after which a remembered answer is computed again in any case."""

    retriever_cache_similarity: float = Field(default=0.97, gt=0, le=1)
    """Cosine from which two queries with the same words in other forms ("get", "gets": 0.98) are taken for the same question. 1
    leaves only the same wording."""

    retriever_max_concurrent_revisions: int = Field(default=32, ge=1)
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

    retriever_tombstone_life_s: float = Field(default=604_800.0, ge=86_400.0)
    """Seconds for which it is remembered that a document was deleted: longer than any job that might still bring it back is kept
    (its record is gone after an hour), or a retriever is cut off. At least a day, default a week. Ids are never used again."""

    retriever_staleness_s: float = Field(default=30.0, gt=0)
    """Seconds without word from the message store after which nothing is shown any more: a document may have been deleted
    meanwhile. Longer than a restart or an election of the message store takes, short enough to keep a deletion's promise."""

    @property
    def index_dir(self) -> Path:
        """Where the indexes lie."""
        return self.data_dir / "retriever"

    def for_memories(self) -> "RetrieverSettings":
        """The same for the indexes of what is remembered of people: folders and names on servers of their own."""
        return self.model_copy(
            update={
                "data_dir": self.index_dir / "memories",
                "qdrant_collection": f"{self.qdrant_collection}-memories",
                "elasticsearch_index": f"{self.elasticsearch_index}-memories",
                "retriever_lexical_heap_bytes": _MEMORIES_HEAP_BYTES,
            }
        )

    @property
    def search(self) -> SearchOptions:
        return SearchOptions(
            fusion=self.retriever_fusion,
            dense_weight=self.retriever_dense_weight,
            lexical_weight=self.retriever_lexical_weight,
            min_candidates=self.retriever_min_candidates,
            small_corpus_chunks=self.retriever_small_corpus_chunks,
            small_strategy=self.retriever_small_strategy,
            large_corpus_chunks=self.retriever_large_corpus_chunks,
            noise_cosine=self.retriever_noise_cosine,
            rerank=self.retriever_rerank,
            rerank_depth=self.retriever_rerank_depth,
            rerank_weight=self.retriever_rerank_weight,
            rerank_budget_s=self.retriever_rerank_budget_s,
            embed_timeout_s=self.retriever_embed_timeout_s,
            engine_timeout_s=self.retriever_engine_timeout_s,
            rerank_timeout_s=self.retriever_rerank_timeout_s,
            cache_bytes=self.retriever_cache_bytes,
            cache_ttl_s=self.retriever_cache_ttl_s,
            cache_similarity=self.retriever_cache_similarity,
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
            interval_s=self.retriever_reconcile_interval_s,
            orphan_age_s=self.retriever_orphan_age_s,
            tombstone_life_s=self.retriever_tombstone_life_s,
        )

    @field_validator("qdrant_url", "elasticsearch_url")
    @classmethod
    def _names_servers(cls, value: str | None) -> str | None:
        """A container platform sets what it does not know to nothing: that means unset."""
        for url in (value or "").split(","):
            parts = urlsplit(url.strip())
            if value and (parts.scheme not in {"http", "https"} or not parts.hostname):
                raise ValueError("it must be addresses like https://host:port")
        return value or None

    @model_validator(mode="after")
    def _has_whole_credentials(self) -> Self:
        if bool(self.elasticsearch_username) != bool(self.elasticsearch_password):
            raise ValueError("GROUNDWORK_ELASTICSEARCH_USERNAME and GROUNDWORK_ELASTICSEARCH_PASSWORD go together")
        return self

    @property
    def qdrant(self) -> QdrantOptions | None:
        """None: the embedded engine."""
        if not self.qdrant_url:
            return None
        return QdrantOptions(
            url=self.qdrant_url,
            api_key=self.qdrant_api_key,
            ca_file=self.qdrant_ca_file,
            collection=self.qdrant_collection,
            shards=self.qdrant_shards,
            replicas=self.qdrant_replicas,
        )

    @property
    def elasticsearch(self) -> ElasticsearchOptions | None:
        """None: the embedded engine."""
        if not self.elasticsearch_url:
            return None
        return ElasticsearchOptions(
            urls=tuple(_with_port(url.strip()) for url in self.elasticsearch_url.split(",")),
            api_key=self.elasticsearch_api_key,
            username=self.elasticsearch_username,
            password=self.elasticsearch_password,
            ca_file=self.elasticsearch_ca_file,
            index=self.elasticsearch_index,
            shards=self.elasticsearch_shards,
            replicas=self.elasticsearch_replicas,
        )


def _with_port(url: str) -> str:
    """The client insists on a port; 9200 is Elasticsearch's own."""
    parts = urlsplit(url)
    return url if parts.port else parts._replace(netloc=f"{parts.netloc}:9200").geturl()
