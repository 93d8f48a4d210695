"""The reference of ingestion: the same model with its pooling, runtime, tokenizer and padding in this process, with all texts known
beforehand and sorted by length. No queue, no gRPC, no index: as fast as the embedder can be fed on this machine."""

import os
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench.corpus import SampleDocument
from services.ingest.adapters.tokenizer import open_tokenizer
from services.ingest.reading.child.prepare import prepare
from services.ingest.reading.chunks.tokens import SENTENCEPIECE_SUFFIX
from services.ingest.reading.models import PrepareRequest
from services.reranker.adapters.cpu_model import LoadedModel, embedding_models, load
from services.reranker.batching.padding import pad, padded_length
from services.reranker.embedding.preparation import Preparation
from services.reranker.models import TextKind, TokenIds, TokenizerForm
from services.reranker.settings import RerankerSettings

_PAD_TO_MULTIPLE = 16
_TEXTS_PER_TOKENIZER_CALL = 64


@dataclass(frozen=True)
class RawRun:
    """How fast this process embedded."""

    texts: int
    tokens: int
    seconds: float
    cpu_seconds: float

    @property
    def texts_per_s(self) -> float:
        return self.texts / self.seconds


class RawEmbedder:
    """The model server's encoder without the server."""

    def __init__(self) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
        # The settings insist on a secret; nothing is served here.
        self._settings = RerankerSettings(auth_public_keys="none: nobody calls it")
        self._loaded: LoadedModel = load(self._settings, embedding_models(self._settings)[0])
        prompts = self._loaded.model.prompts or {}
        self._prompt = prompts.get(TextKind.PASSAGE, "")
        self._window_tokens = Preparation(self._loaded.tokenizer, ThreadPoolExecutor(1), prompts).window_tokens

    @property
    def description(self) -> str:
        """Model and runtime."""
        return f"{self._loaded.model.name} on {self._loaded.encoder.runtime}"

    def chunks_of(self, documents: Sequence[SampleDocument]) -> list[str]:
        """The texts that the ingest worker will embed: the same parsers, the same chunker."""
        texts: list[str] = []
        with tempfile.TemporaryDirectory() as folder:
            published = self._loaded.tokenizer.definition
            suffix = SENTENCEPIECE_SUFFIX if published.form is TokenizerForm.SENTENCEPIECE else ".json"
            definition = Path(folder, f"tokenizer{suffix}")
            definition.write_bytes(published.content)
            tokenizer = open_tokenizer(definition)
            for document in documents:
                path = Path(folder, document.name)
                path.write_text(document.text, "utf-8")
                media_type = "text/markdown" if path.suffix == ".md" else "text/plain"
                request = PrepareRequest(str(path), media_type, document.name, str(definition), self._window_tokens)
                prepared = prepare(request, lambda _: None, tokenizer)
                texts += [chunk.embedded_text for chunk in prepared.chunks]
        return texts

    def run(self, texts: Sequence[str]) -> RawRun:
        """Tokenizes, encodes and pools all texts."""
        started_at, cpu_started_at = time.perf_counter(), time.process_time()
        ids: list[TokenIds] = []
        for start in range(0, len(texts), _TEXTS_PER_TOKENIZER_CALL):
            batch = texts[start : start + _TEXTS_PER_TOKENIZER_CALL]
            ids += self._loaded.tokenizer.tokenize([self._prompt + text for text in batch])
        with ThreadPoolExecutor(self._loaded.encoder.streams) as pool:
            list(pool.map(self._encode, self._batches(ids)))
        return RawRun(
            texts=len(texts),
            tokens=sum(len(each) for each in ids),
            seconds=time.perf_counter() - started_at,
            cpu_seconds=time.process_time() - cpu_started_at,
        )

    def _encode(self, batch: Sequence[TokenIds]) -> None:
        self._loaded.encoder.encode(*pad(batch, _PAD_TO_MULTIPLE))

    def _batches(self, ids: Sequence[TokenIds]) -> list[list[TokenIds]]:
        batches: list[list[TokenIds]] = []
        room = 0
        for each in sorted(ids, key=len, reverse=True):
            if not room:
                batches.append([])
                room = max(1, self._settings.reranker_batch_tokens // padded_length(len(each), _PAD_TO_MULTIPLE))
                room = min(room, self._settings.reranker_batch_texts)
            batches[-1].append(each)
            room -= 1
        return batches
