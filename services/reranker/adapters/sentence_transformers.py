"""Bi-encoders and cross-encoders by sentence-transformers on a GPU, in bf16. The only file that knows torch.

Texts come as token ids, in batches that the batcher has sorted by length and bounded in tokens; what the library would do on
top (its own sorting, batching and progress bars) is left out. One thread calls both models: they share one device, and a
second one would only make the first wait.
"""

import importlib.util
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from services.reranker import metrics
from services.reranker.embedding.pooling import normalised
from services.reranker.errors import (
    DeviceMemoryExhausted,
    EncoderFailed,
    ModelFileMissing,
    ModelUnusable,
    RuntimeMissing,
)
from services.reranker.models import Encoded, Float32, Int64, TextKind

_FALLBACK_WINDOW_TOKENS = 512
_LARGEST_WINDOW_TOKENS = 8192
_PROMPT_NAMES = {TextKind.QUERY: ("query",), TextKind.PASSAGE: ("passage", "document", "corpus")}


def gpu_available(device: str) -> bool:
    """Whether sentence-transformers is installed and torch sees the device. Importing torch takes seconds."""
    if any(importlib.util.find_spec(name) is None for name in ("torch", "sentence_transformers")):
        return False
    import torch  # noqa: PLC0415 - an extra

    return not device.startswith("cuda") or bool(torch.cuda.is_available())


def show_device_memory(device: str) -> None:
    """Has /metrics tell the memory of a CUDA device whenever it is read."""
    if not device.startswith("cuda"):
        return
    import torch  # noqa: PLC0415 - an extra

    def readable(ask: Callable[[], int]) -> Callable[[], float]:
        def answer() -> float:
            try:
                return ask()
            except RuntimeError:  # of a device that is lost; the other metrics are still to be read
                return math.nan

        return answer

    memory = metrics.DEVICE_MEMORY
    memory.labels("free").set_function(readable(lambda: torch.cuda.mem_get_info(device)[0]))
    memory.labels("total").set_function(readable(lambda: torch.cuda.mem_get_info(device)[1]))
    memory.labels("ours").set_function(readable(lambda: torch.cuda.memory_reserved(device)))


class _TorchModel:
    """What both kinds have in common: loading, the tokenizer, and a forward pass that says when memory is short."""

    def __init__(self, kind: str, name: str, device: str, *, may_download: bool) -> None:
        self._torch, library = _import_libraries()
        self.name = name
        self._device = device
        dtype = self._torch.bfloat16 if device.startswith("cuda") else self._torch.float32
        try:
            self._model: Any = getattr(library, kind)(
                name, device=device, local_files_only=not may_download, model_kwargs={"dtype": dtype}
            )
        except OSError as error:
            raise ModelFileMissing(
                f"model {name} is not on this machine ({str(error).splitlines()[0]}); set the path of its folder, fetch it with "
                "`hf download`, or set GROUNDWORK_RERANKER_GPU_DOWNLOAD=true",
                model=name,
            ) from error
        except (RuntimeError, ValueError, KeyError) as error:
            raise ModelUnusable(f"model {name} cannot be loaded as a {kind}: {error}", model=name) from error
        self._model.eval()
        self._tokenizer: Any = self._model.tokenizer
        self._reads_types = "token_type_ids" in self._tokenizer.model_input_names

    @property
    def runtime(self) -> str:
        return f"sentence-transformers/{self._device}"

    @property
    def streams(self) -> int:
        return 1

    @property
    def tokenizer_json(self) -> bytes:
        """Hugging Face `tokenizers` JSON."""
        backend = getattr(self._tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise ModelUnusable(f"model {self.name} has no fast tokenizer; choose a model that has a tokenizer.json")
        definition: bytes = backend.to_str().encode()
        return definition

    @property
    def window_tokens(self) -> int:
        """What the model says it reads, bounded: some say 10³⁰."""
        return min(int(self._model.max_seq_length or _FALLBACK_WINDOW_TOKENS), _LARGEST_WINDOW_TOKENS)

    def _run(self, forward: Callable[[dict[str, Any]], Any], input_ids: Int64, attention_mask: Int64) -> Float32:
        torch = self._torch
        try:
            with torch.inference_mode():
                result: Float32 = forward(self._features(input_ids, attention_mask)).float().cpu().numpy()
        except torch.OutOfMemoryError as error:
            torch.cuda.empty_cache()
            raise DeviceMemoryExhausted(
                f"a batch of shape {input_ids.shape} does not fit into the memory of {self._device}; lower "
                "GROUNDWORK_RERANKER_GPU_BATCH_TOKENS or use a smaller model"
            ) from error
        except (RuntimeError, IndexError) as error:
            raise EncoderFailed(f"{self.name} refused a batch of shape {input_ids.shape}: {error}") from error
        return result

    def _features(self, input_ids: Int64, attention_mask: Int64) -> dict[str, Any]:
        # Our padding may be wider than the model has positions. Cutting it to the longest text would give each batch a shape of its
        # own, and a shape that CUDA meets for the first time costs twice the time (docs/benchmarks.md).
        width = min(input_ids.shape[1], self.window_tokens)
        ids, mask = input_ids[:, :width], attention_mask[:, :width]
        # RoBERTa counts positions by looking for its own padding token.
        arrays = {"input_ids": np.where(mask == 1, ids, self._tokenizer.pad_token_id or 0), "attention_mask": mask}
        if self._reads_types:
            arrays["token_type_ids"] = self._token_types(ids) * mask
        return {name: self._torch.from_numpy(np.ascontiguousarray(a)).to(self._device) for name, a in arrays.items()}

    def _token_types(self, ids: Int64) -> Int64:
        """0 up to the first separator, 1 behind it where a second text follows: BERT's two segments."""
        separators = (ids == self._tokenizer.sep_token_id).astype(np.int64)
        behind_first = np.cumsum(separators, axis=1) - separators
        types: Int64 = np.minimum(behind_first, 1)
        return types


class BiEncoder(_TorchModel):
    """A SentenceTransformer: one vector per text, pooled by the model."""

    def __init__(self, name: str, device: str, *, may_download: bool = False) -> None:
        super().__init__("SentenceTransformer", name, device, may_download=may_download)
        one = np.ones((1, 1), np.int64)
        self._dimension = int(self.encode(one, one).pooled.shape[-1])

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def prompts(self) -> dict[TextKind, str]:
        """What the model wants in front of each kind of text; empty when it was trained without."""
        given = self._model.prompts
        return {
            kind: next((given[name] for name in names if given.get(name)), "") for kind, names in _PROMPT_NAMES.items()
        }

    def encode(self, input_ids: Int64, attention_mask: Int64) -> Encoded:
        vectors = self._run(lambda features: self._model(features)["sentence_embedding"], input_ids, attention_mask)
        return Encoded(normalised(vectors))


class CrossEncoder(_TorchModel):
    """A CrossEncoder: one score per pair, through the activation that the model was trained with."""

    def __init__(self, name: str, device: str, *, may_download: bool = False) -> None:
        super().__init__("CrossEncoder", name, device, may_download=may_download)
        if self._model.num_labels != 1:
            raise ModelUnusable(
                f"model {name} gives {self._model.num_labels} scores for a pair where one is wanted; choose a reranking "
                "model such as BAAI/bge-reranker-v2-m3",
                model=name,
            )

    @property
    def dimension(self) -> int:
        return 1

    def encode(self, input_ids: Int64, attention_mask: Int64) -> Encoded:
        return Encoded(self._run(self._scores, input_ids, attention_mask).reshape(len(input_ids), 1))

    def _scores(self, features: dict[str, Any]) -> Any:
        # In float32: bf16 has three digits, and ties would be broken by chance.
        return self._model.activation_fn(self._model.model(**features).logits.float())


class EntailmentModel(_TorchModel):
    """A CrossEncoder with entailment labels: the probabilities of entailment, neither, and contradiction for a pair of premise and
    hypothesis. The order of the labels is that of the model's configuration."""

    dimension = 3

    def __init__(self, name: str, device: str, *, may_download: bool = False) -> None:
        super().__init__("CrossEncoder", name, device, may_download=may_download)
        labels = {int(number): str(label).lower() for number, label in self._model.model.config.id2label.items()}
        # `not_entailment` is no entailment.
        self._columns = [next((n for n, label in labels.items() if label.startswith(kind)), None) for kind in _LABELS]
        if self._columns[0] is None or (self._columns[2] is None and len(labels) != 2):
            raise ModelUnusable(
                f"model {name} has the labels {', '.join(labels.values())}, and none for entailment and contradiction; choose a "
                "model for natural language inference such as cross-encoder/nli-deberta-v3-base",
                model=name,
            )

    def encode(self, input_ids: Int64, attention_mask: Int64) -> Encoded:
        return Encoded(self._run(self._probabilities, input_ids, attention_mask))

    def _probabilities(self, features: dict[str, Any]) -> Any:
        torch = self._torch
        found = torch.softmax(self._model.model(**features).logits.float(), dim=-1)
        nothing = torch.zeros_like(found[:, 0])
        return torch.stack([nothing if each is None else found[:, each] for each in self._columns], dim=-1)


_LABELS = ("entail", "neutral", "contradict")
"""How the names of the labels begin."""


def _import_libraries() -> tuple[Any, Any]:
    try:
        import sentence_transformers  # noqa: PLC0415 - an extra: gigabytes with torch
        import torch  # noqa: PLC0415
    except ImportError as error:
        raise RuntimeMissing(
            "sentence-transformers is not installed; run `pip install 'groundwork[gpu]'`, "
            "or set GROUNDWORK_RERANKER_EMBEDDING_PROVIDER and GROUNDWORK_RERANKER_RERANK_PROVIDER to cpu"
        ) from error
    return torch, sentence_transformers
