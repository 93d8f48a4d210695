"""Who makes the embeddings, and who scores: found by itself, in a fixed order."""

from collections.abc import Callable

from services.reranker.models import Provider


def choose(asked: str, *, remote_url: str, gpu_model: str, has_gpu: Callable[[], bool]) -> Provider:
    """What was asked for; with "auto" the remote API if one is configured, else the GPU if a model for it is configured and there
    is one, else the CPU. `has_gpu` is asked last: it loads a large library."""
    if asked != "auto":
        return Provider(asked)
    if remote_url:
        return Provider.REMOTE
    if gpu_model and has_gpu():
        return Provider.GPU
    return Provider.CPU
