"""The model server: embeddings and reranking, batched over all callers."""
