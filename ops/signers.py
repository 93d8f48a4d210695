"""The services that sign principal tokens, and the calls that each may sign for: what a stolen key can do. A service that is not
listed only answers, and passes on the tokens that it receives.

The tools service signs no calls: its key seals secrets of tenants' MCP servers (kit.access.sealing).

A service may use its key in the name of any tenant: a queued job and a run that is taken over have no caller any more. So the list
is as short as the service's own calls, with the calls that the called service makes in its name.
"""

from collections.abc import Mapping

SIGNERS: Mapping[str, tuple[str, ...]] = {
    "gateway": (
        "ingest/*",
        "memory/CreateThread",
        "memory/DeleteThread",
        "memory/EditFact",
        "memory/ForgetFacts",
        "memory/GetFact",
        "memory/GetHistory",
        "memory/GetMemory",
        "memory/GetThread",
        "memory/ListFacts",
        "memory/ListThreads",
        "memory/PauseMemory",
        "memory/RenameThread",
        "memory/SearchMemory",
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
        "tools/ApproveTool",
        "tools/DeleteServer",
        "tools/ListServers",
        "tools/SetServer",
    ),
    "orchestrator": (
        "ingest/GetDocument",
        "ingest/ListDocuments",
        "jobs/FORGET.run",
        "jobs/LEARN",
        "memory/AppendMessages",
        "memory/ForgetAnswer",
        "memory/GetArtefact",
        "memory/GetHistory",
        "memory/KeepSummary",
        "memory/LearnTurn",
        "memory/Recall",
        "memory/RecordAnswers",
        "retriever/FetchChunks",
        "retriever/Search",
        "reranker/JudgeClaims",
        "reranker/Rerank",
        "tools/CallTool",
        "tools/ForgetCalls",
        "tools/ListTools",
        # In its name, by tools:
        "ingest/CreateCollection",
        "ingest/DeleteDocument",
        "ingest/ListCollections",
        "ingest/UploadDocument",
        "memory/SearchMemory",
        "reranker/Embed",
    ),
    "retriever": (
        "reranker/Embed",
        "reranker/ForgetTexts",
        "reranker/GetModelInfo",
        "reranker/Rerank",
    ),
    "memory": (
        "jobs/FORGET.fact",
        "jobs/FORGET.thread",
        "jobs/MEMORY",
        "retriever/PutMemories",
        "retriever/RemoveMemories",
        "retriever/SearchMemories",
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
    "tools": (),
}
