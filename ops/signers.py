"""The services that sign principal tokens, and the calls that each may sign for: what a stolen key can do. A service that is not
listed only answers, and passes on the tokens that it receives.

A service may use its key in the name of any tenant: a queued job and a run that is taken over have no caller any more. So the list
is as short as the service's own calls, with the calls that the called service makes in its name.
"""

from collections.abc import Mapping

SIGNERS: Mapping[str, tuple[str, ...]] = {
    "gateway": (
        "ingest/*",
        "memory/CreateThread",
        "memory/DeleteThread",
        "memory/GetHistory",
        "memory/GetThread",
        "memory/ListThreads",
        "memory/RenameThread",
        "orchestrator/*",
        "retriever/ChangeCollectionModel",
        "retriever/DropCollectionModel",
        "retriever/EvaluateCollectionModel",
        "retriever/FetchChunks",
        "retriever/GetCollectionModel",
        "retriever/RollBackCollectionModel",
        "retriever/Search",
        "retriever/SwapCollectionModel",
        "store/GetCondition",
    ),
    "orchestrator": (
        "jobs/FORGET.run",
        "memory/AppendMessages",
        "memory/ForgetAnswer",
        "memory/GetHistory",
        "retriever/Search",
        "reranker/JudgeClaims",
        "reranker/Rerank",
        "tools/CallTool",
        "tools/ForgetCalls",
        "tools/ListTools",
        # In its name, by tools:
        "ingest/CreateCollection",
        "ingest/DeleteDocument",
        "ingest/GetDocument",
        "ingest/ListCollections",
        "ingest/ListDocuments",
        "ingest/UploadDocument",
        "reranker/Embed",
        "retriever/FetchChunks",
    ),
    "retriever": (
        "reranker/Embed",
        "reranker/ForgetTexts",
        "reranker/GetModelInfo",
        "reranker/Rerank",
    ),
    "memory": (
        "jobs/FORGET.thread",
        "jobs/MEMORY",
    ),
    "ingest": (
        "jobs/FORGET.document",
        "jobs/INGEST",
        "retriever/DeleteDocument",
    ),
    "ingest-worker": (
        "jobs/FORGET.document",
        "jobs/INGEST",
        "retriever/ActivateRevision",
        "retriever/CheckRevisions",
        "retriever/DeleteDocument",
        "retriever/FetchVectors",
        "retriever/IndexChunks",
        "retriever/ListDocuments",
        "reranker/Embed",
        "reranker/GetModelInfo",
        "reranker/GetTokenizer",
    ),
}
