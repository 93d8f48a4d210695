"""The model server's settings."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, field_validator, model_validator

from kit.process.settings import ServiceSettings
from services.reranker.embedding.preparation import MAX_TEXTS
from services.reranker.judging.rules.table import Rule, switched
from services.reranker.models import BatchLimits

_PAD_TO_MULTIPLE = 16
_PAD_LONE_QUERY_TO = 4
"""On a CPU each token of padding costs 0.6 ms: a query of 17 tokens takes 15 ms, padded to 32 it takes 21."""


class RerankerSettings(ServiceSettings):
    """Settings of the model server."""

    models_dir: Path = Path(".models")
    """Folder with the model files, as `make setup` fills it. Relative to the working directory."""

    reranker_embedding_provider: Literal["auto", "remote", "gpu", "cpu"] = "auto"
    """Where embeddings are made. "auto" takes the first of: the remote API if its URL is set, the GPU if a model for it is set and
    torch sees one, else this machine's CPU. Vectors of different models never meet: changing it means indexing again."""

    reranker_rerank_provider: Literal["auto", "remote", "gpu", "cpu"] = "auto"
    """Where passages are scored; "auto" as above. A GPU without the model's files is passed over, and the log says so."""

    reranker_cpu_embedding_model: Literal["multilingual", "english"] = "multilingual"
    """Model for new texts where this machine's CPU embeds: multilingual-e5-small, which needs OpenVINO, or all-MiniLM-L6-v2, which
    understands English only and takes two thirds of the time. What the other has embedded stays searchable: it is loaded when a
    search needs it."""

    reranker_runtime: Literal["auto", "openvino", "onnxruntime"] = "auto"
    """What computes the CPU model. OpenVINO is about three times as fast; onnxruntime runs on more platforms. "auto" takes
    OpenVINO where it is installed."""

    reranker_threads: int = Field(default=0, ge=0, le=256)
    """Threads that compute, divided among the streams. 0 takes all cores."""

    reranker_streams: int = Field(default=0, ge=0, le=64)
    """Batches computed at once, each on its share of the threads. 0 takes one a thread, at most eight: threads that wait for
    nobody lose little to other processes, and each stream keeps compiled kernels of its own in memory."""

    reranker_batch_tokens: int = Field(default=512, ge=256, le=65_536)
    """Tokens of one batch, padding counted. Larger batches are no faster on a CPU, and a query waits for the batch before
    it: 512 tokens take 25 to 75 ms on two cores."""

    reranker_batch_texts: int = Field(default=32, ge=1, le=1024)
    """Texts of one batch: many tiny texts are bounded too."""

    reranker_queue_tokens: int = Field(default=4 * MAX_TEXTS * 256, ge=MAX_TEXTS * 256)
    """Tokens that may wait in each lane (queries, reranking, passages) before requests are refused. The default is four of
    the largest requests: one to two minutes of bulk work on two cores."""

    reranker_cache_bytes: int = Field(default=32 * 1024 * 1024, ge=0)
    """Memory for the token vectors of recent queries and reranked passages: 1500 of 200 tokens. 0: none."""

    reranker_judge_cache_bytes: int = Field(default=8 * 1024 * 1024, ge=0)
    """Memory for the token vectors of passages that claims were judged against a moment ago: 100 of 200 tokens. 0: none."""

    reranker_judge_rules_off: str = ""
    """Exact rules in front of the learned judge that are switched off: their names with commas between them, as
    docs/evaluation.md lists them ("cause,name"). A rule only lowers a verdict."""

    data_dir: Path = Path("data")
    """Folder of everything durable; token vectors lie in its `reranker` folder."""

    reranker_store_bytes: int = Field(default=1024**3, ge=0)
    """Disk for the token vectors of indexed passages, with which late interaction reranks at once: 21 KB for 200 tokens, 50 000
    passages. The oldest make room. A cache: delete it as you like, with the server stopped. 0: none."""

    reranker_store_days: int = Field(default=30, ge=1, le=3650)
    """Days that token vectors stay on disk after they were last used. Those of a deleted document are removed at once by the server
    that answers; this bounds how long another replica, which keeps a store of its own, may hold them."""

    reranker_gpu_device: str = "cuda"
    """torch's name of the device, for example "cuda:1"."""

    reranker_gpu_embedding_model: str = ""
    """Bi-encoder for the GPU: a folder, or a name on the Hugging Face hub. Empty: the GPU makes no embeddings."""

    reranker_gpu_rerank_model: str = "BAAI/bge-reranker-v2-m3"
    """Cross-encoder for the GPU: a folder, or a name on the Hugging Face hub. Multilingual, 568 million parameters."""

    reranker_gpu_judge_model: str = ""
    """Cross-encoder with entailment labels that judges claims on the GPU: a folder, or a name on the Hugging Face hub. Empty: the
    learned judge, on the CPU."""

    reranker_gpu_download: bool = False
    """Whether a model that is not on this machine may be fetched from the Hugging Face hub. Off: nothing leaves unasked."""

    reranker_gpu_batch_tokens: int = Field(default=16_384, ge=512, le=1_048_576)
    """Tokens of one batch on the GPU, padding counted. Halved by itself, until the restart, when the memory is too small."""

    reranker_gpu_batch_texts: int = Field(default=256, ge=1, le=4096)
    """Texts of one batch on the GPU."""

    reranker_remote_embedding_url: str = ""
    """Remote embedding API, with its version: https://api.openai.com/v1. Empty: none."""

    reranker_remote_embedding_local: bool | None = None
    """Whether that API is local: a collection may allow local models only, and is then refused embeddings by an API outside.
    Left out, its address decides: this machine, and names of the same cluster or Compose project, are local."""

    reranker_remote_embedding_api: Literal["openai", "tei"] = "openai"
    """Its shape: OpenAI's (vLLM, Ollama and most others too) or that of Hugging Face's text-embeddings-inference."""

    reranker_remote_embedding_model: str = ""
    """Name of the model there; the vectors are stored under it. Needed with the URL."""

    reranker_remote_embedding_api_key: SecretStr = SecretStr("")
    """Key, sent as a bearer token."""

    reranker_remote_embedding_window_tokens: int = Field(default=512, ge=64, le=32_768)
    """Tokens that the remote model reads of a text: chunks are cut to fit."""

    reranker_remote_embedding_dimensions: int = Field(default=0, ge=0, le=8192)
    """Length of the vectors to ask for. 0: the model's own, learned at the start, for which the API must be up then."""

    reranker_remote_embedding_query_prompt: str = ""
    """Put in front of queries, if the remote model was trained so and the API does not do it: "query: " for E5."""

    reranker_remote_embedding_passage_prompt: str = ""
    """Put in front of passages, likewise: "passage: " for E5."""

    reranker_remote_embedding_batch_texts: int = Field(default=0, ge=0, le=2048)
    """Texts of one request. 0: what the API takes by default, 128 for OpenAI's and 32 for text-embeddings-inference."""

    reranker_remote_rerank_url: str = ""
    """Remote rerank API without version: https://api.cohere.com, https://api.jina.ai. Empty: none."""

    reranker_remote_rerank_local: bool | None = None
    """Whether that API is local: a collection may allow local models only, and is then refused reranking by an API outside.
    Left out, its address decides: this machine, and names of the same cluster or Compose project, are local."""

    reranker_remote_rerank_api: Literal["cohere", "jina", "tei"] = "cohere"
    """Its shape: Cohere's /v2/rerank, Jina's /v1/rerank (vLLM too), or /rerank of text-embeddings-inference."""

    reranker_remote_rerank_model: str = ""
    """Name of the model there. Needed with the URL."""

    reranker_remote_rerank_api_key: SecretStr = SecretStr("")
    """Key, sent as a bearer token."""

    reranker_remote_rerank_batch_texts: int = Field(default=0, ge=0, le=1000)
    """Passages of one request. 0: what the API takes by default, 1000, or 32 for text-embeddings-inference."""

    reranker_remote_concurrency: int = Field(default=4, ge=1, le=64)
    """Requests in flight to each remote API; more wait. Providers limit requests a minute."""

    @field_validator("reranker_judge_rules_off")
    @classmethod
    def _check_rules(cls, names: str) -> str:
        switched(_names(names))
        return names

    @property
    def judge_rules(self) -> Sequence[Rule]:
        """The exact rules that are on."""
        return switched(_names(self.reranker_judge_rules_off))

    @model_validator(mode="after")
    def _providers_are_configured(self) -> "RerankerSettings":
        for part in ("embedding", "rerank"):
            url, model = getattr(self, f"reranker_remote_{part}_url"), getattr(self, f"reranker_remote_{part}_model")
            setting = f"GROUNDWORK_RERANKER_REMOTE_{part.upper()}"
            if url and not url.startswith(("http://", "https://")):
                raise ValueError(f"{setting}_URL is {url!r}; it must start with http:// or https://")
            if url and not model:
                raise ValueError(f"{setting}_URL is set and {setting}_MODEL is not; name the model")
            provider = getattr(self, f"reranker_{part}_provider")
            if provider == "remote" and not url:
                raise ValueError(f"GROUNDWORK_RERANKER_{part.upper()}_PROVIDER is remote; set {setting}_URL")
            if provider == "gpu" and not getattr(self, f"reranker_gpu_{part}_model"):
                needed = f"GROUNDWORK_RERANKER_GPU_{part.upper()}_MODEL"
                raise ValueError(f"GROUNDWORK_RERANKER_{part.upper()}_PROVIDER is gpu; set {needed}")
        return self

    @property
    def store_folder(self) -> Path:
        return self.data_dir / "reranker"

    @property
    def cpu_limits(self) -> BatchLimits:
        return BatchLimits(
            self.reranker_batch_tokens,
            self.reranker_batch_texts,
            _PAD_TO_MULTIPLE,
            self.reranker_queue_tokens,
            _PAD_LONE_QUERY_TO,
        )

    @property
    def gpu_limits(self) -> BatchLimits:
        return BatchLimits(
            self.reranker_gpu_batch_tokens, self.reranker_gpu_batch_texts, _PAD_TO_MULTIPLE, self.reranker_queue_tokens
        )


def _names(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]
