"""The similarity gate: what is farther from the question than a threshold is left out, for nothing is better than noise.

Vectors always find something: they rank everything. What they alone found must pass a threshold that was measured for the
model; what words found too is not held to it, for a name or a number says nothing to a small model and is right all the same.
While the lexical engine is away nobody can vouch for those, so there is no threshold then. A request's own `min_score` holds for
every hit.
"""

from collections.abc import Collection, Mapping

from services.retriever.models import EmbeddingSpace

_NOISE_COSINES = {"all-MiniLM-L6-v2": 0.25}
"""By the beginning of the model's name. Of 4 439 right passages of SciFact, XQuAD and SQuAD 2 four were found by vectors alone
and lie below 0.25 (nine below 0.3); questions about something else have their nearest passage at 0.17 to 0.35."""


def noise_cosine(space: EmbeddingSpace | None, setting: float | None) -> float | None:
    """The threshold for what vectors alone found: the setting, or the measured one of the model; None when there is neither."""
    if setting is not None:
        return setting
    model = space.model.rsplit("/", 1)[-1] if space else ""
    return next((cosine for name, cosine in _NOISE_COSINES.items() if model.startswith(name)), None)


def below(
    ranked: Collection[str],
    cosines: Mapping[str, float],
    found_by_words: Collection[str],
    *,
    min_score: float | None,
    noise: float | None,
) -> dict[str, str]:
    """The chunks to leave out, each with the reason. One whose cosine cannot be had now, because an engine is down, stays."""
    out = {}
    for chunk_id in ranked:
        cosine = cosines.get(chunk_id)
        if cosine is None:
            continue
        if min_score is not None:
            if cosine < min_score:
                out[chunk_id] = f"its similarity {cosine:.3f} is below {min_score:g}, which the request wants at least"
        elif noise is not None and cosine < noise and chunk_id not in found_by_words:
            out[chunk_id] = (
                f"only vectors found it, and its similarity {cosine:.3f} is below {noise:g}: noise for this model"
            )
    return out
