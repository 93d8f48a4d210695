"""The peer: LlamaIndex's hybrid retrieval, as its documentation shows it, on the same model weights. Runs in the peer's own
environment (`bench/peers/peer_environment.py`) and knows nothing of Groundwork: `python peer_llamaindex.py JOB OUT`, both JSON.

Its parts are its own: SentenceSplitter, IngestionPipeline, VectorStoreIndex over its in-memory vector store, BM25Retriever (bm25s
with Snowball stemming), QueryFusionRetriever in reciprocal-rank mode. The embedder is the model on OpenVINO, as the library's own
integration of OpenVINO runs it: the texts of a call, of which the library puts 10 in one, padded to the longest. `tuned` gives it
what our model server does as well: 512 texts a call, sorted by length, one stream a core.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import openvino
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.retrievers.bm25 import BM25Retriever
from tokenizers import Tokenizer

_TEXTS_A_CALL = 512
_BATCH_TOKENS = 512
_PAD_TO_MULTIPLE = 16
_SPECIAL_TOKENS = 2
_WARM_UP_QUERIES = 5


class MiniLm(BaseEmbedding):  # type: ignore[misc]  # its stubs are in the environment of the peer
    """all-MiniLM-L6-v2 in int8: mean pooling over all tokens, L2-normalised."""

    _tuned: bool = PrivateAttr()
    _tokenizer: Any = PrivateAttr()
    _requests: Any = PrivateAttr()
    _pool: Any = PrivateAttr()

    def __init__(self, weights: str, tokenizer: str, window_tokens: int, threads: int, *, tuned: bool) -> None:
        batching = {"embed_batch_size": _TEXTS_A_CALL} if tuned else {}
        super().__init__(model_name="all-MiniLM-L6-v2-int8", **batching)
        self._tuned = tuned
        self._tokenizer = Tokenizer.from_file(tokenizer)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(window_tokens)
        streams = threads if tuned else 1
        options = {
            "PERFORMANCE_HINT": "THROUGHPUT" if tuned else "LATENCY",
            "NUM_STREAMS": streams,
            "INFERENCE_NUM_THREADS": threads,
            "ENABLE_CPU_PINNING": False,
            "CPU_RUNTIME_CACHE_CAPACITY": 512,
        }
        core = openvino.Core()
        compiled = core.compile_model(core.read_model(weights), "CPU", options)
        self._requests = SimpleQueue()
        for _ in range(streams):
            self._requests.put(compiled.create_infer_request())
        self._encode([[101, 102]])  # OpenVINO's first call must be alone
        self._pool = ThreadPoolExecutor(streams)

    def count(self, text: str) -> list[int]:
        """Token ids without special tokens: what the splitter measures by."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def _encode(self, ids: list[list[int]]) -> np.ndarray[Any, np.dtype[np.float32]]:
        width = -(-max(map(len, ids)) // _PAD_TO_MULTIPLE) * _PAD_TO_MULTIPLE
        input_ids = np.zeros((len(ids), width), dtype=np.int64)
        mask = np.zeros_like(input_ids)
        for row, each in enumerate(ids):
            input_ids[row, : len(each)] = each
            mask[row, : len(each)] = 1
        request = self._requests.get()
        try:
            inputs = {"input_ids": input_ids, "attention_mask": mask, "token_type_ids": np.zeros_like(input_ids)}
            hidden = next(iter(request.infer(inputs, share_inputs=True).values()))
        finally:
            self._requests.put(request)
        summed = (hidden * mask[:, :, None]).sum(axis=1)
        return np.asarray(summed / np.linalg.norm(summed, axis=1, keepdims=True), dtype=np.float32)

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        ids = [each.ids for each in self._tokenizer.encode_batch(texts)]
        if not self._tuned:
            rows: list[list[float]] = self._encode(ids).tolist()
            return rows
        batches: list[list[int]] = []
        for position in sorted(range(len(ids)), key=lambda each: -len(ids[each])):
            if not batches or (len(batches[-1]) + 1) * len(ids[batches[-1][0]]) > _BATCH_TOKENS:
                batches.append([])
            batches[-1].append(position)
        vectors: list[list[float]] = [[]] * len(texts)
        encoded = self._pool.map(lambda batch: self._encode([ids[each] for each in batch]), batches)
        for batch, found in zip(batches, encoded, strict=True):
            for position, row in zip(batch, found.tolist(), strict=True):
                vectors[position] = row
        return vectors

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def main(job: dict[str, Any]) -> dict[str, Any]:
    """Ingests the documents, asks the queries one at a time; times in seconds and milliseconds."""
    window = job["window_tokens"]
    embedder = MiniLm(job["weights"], job["tokenizer"], window, job["threads"], tuned=job["tuned"])
    splitter = SentenceSplitter(
        chunk_size=window - _SPECIAL_TOKENS, chunk_overlap=job["overlap_tokens"], tokenizer=embedder.count
    )
    documents = [Document(text=each["text"], doc_id=each["id"]) for each in job["documents"]]
    embedder.get_text_embedding_batch([each.text for each in documents[:32]])  # kernels of the first shapes
    began = time.perf_counter()
    nodes = IngestionPipeline(transformations=[splitter, embedder], disable_cache=True).run(documents=documents)
    index = VectorStoreIndex(nodes, embed_model=embedder)
    lexical = BM25Retriever.from_defaults(nodes=list(nodes), similarity_top_k=min(job["depth"], len(nodes)))
    ingestion_s = time.perf_counter() - began
    retriever = QueryFusionRetriever(
        [index.as_retriever(similarity_top_k=job["depth"]), lexical],
        llm=MockLLM(),
        similarity_top_k=job["top_k"],
        num_queries=1,
        mode=FUSION_MODES.RECIPROCAL_RANK,
        use_async=False,
    )
    for query in job["queries"][:_WARM_UP_QUERIES]:
        retriever.retrieve(query["text"])
    answers: dict[str, list[str]] = {}
    latencies_ms: dict[str, float] = {}
    for query in job["queries"]:
        began = time.perf_counter()
        hits = retriever.retrieve(query["text"])
        latencies_ms[query["id"]] = 1000 * (time.perf_counter() - began)
        answers[query["id"]] = list(dict.fromkeys(hit.node.ref_doc_id for hit in hits))
    return {
        "versions": {
            name: version(name) for name in ("llama-index-core", "llama-index-retrievers-bm25", "bm25s", "openvino")
        },
        "chunks": len(nodes),
        "ingestion_s": ingestion_s,
        "answers": answers,
        "latencies_ms": latencies_ms,
    }


if __name__ == "__main__":
    result = main(json.loads(Path(sys.argv[1]).read_text("utf-8")))
    Path(sys.argv[2]).write_text(json.dumps(result), "utf-8")
