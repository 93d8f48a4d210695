"""The similarity gate: what is farther from the question than a threshold is left out, for nothing is better than noise.

Vectors always find something: they rank everything. What they alone found must pass a threshold that was measured for the model
and the languages of question and passage (`noise_cosines.json`, made by `evals/noise_cosines.py`); what words found too is not held
to it, for a name or a number says nothing to a small model and is right all the same. While the lexical engine is away, or where
it is not asked, nobody can vouch for those, so there is no threshold then. A request's own `min_score` holds for every hit.

One threshold does not do for multilingual-e5-small: passages that have nothing to do with a question have cosines of 0.21 (English)
to 0.40 (Chinese) within a language and 0.07 to 0.18 across. Over 26 pairs of languages the question's own passage stands out from
the nearest one of another subject with an AUROC of 0.78 by the bare cosine, of 0.90 by how far it stands above what is usual for
the pair. How far it stands above the rest of its list adds 0.005 and is left out: where all of a collection is about the question,
nothing stands above the rest.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from services.retriever.models import EmbeddingSpace

Noise = Callable[[str], float | None]
"""The threshold of a chunk, by its id."""


def noise_cosine(space: EmbeddingSpace | None, language: str, spoken: Sequence[tuple[str, ...] | None]) -> float | None:
    """The threshold for a chunk that vectors alone found, the least of all queries; None where the model has none. `spoken`: by
    query the languages that it is in, None where it may be in all that are searched."""
    model = space.model.rsplit("/", 1)[-1] if space else ""
    measured = next((each for name, each in _measured().items() if model.startswith(name)), None)
    if measured is None:
        return None
    within = measured["within"]
    own: float = within.get(language, min(within.values()))
    is_own = all(languages is None or language in ("", *languages) for languages in spoken)
    return own if is_own else min(own, measured["across"])


@cache
def _measured() -> Mapping[str, Any]:
    """By the beginning of a model's name."""
    return json.loads(files(__package__).joinpath("noise_cosines.json").read_text("utf-8"))["models"]  # type: ignore[no-any-return]


def below(
    ranked: Collection[str],
    cosines: Mapping[str, float],
    found_by_words: Collection[str],
    *,
    min_score: float | None,
    noise: Noise | None,
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
        elif noise is not None and chunk_id not in found_by_words and cosine < (least := noise(chunk_id) or -1.0):
            out[chunk_id] = (
                f"only vectors found it, and its similarity {cosine:.3f} is below {least:g}: noise for this model"
            )
    return out
