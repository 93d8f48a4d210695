"""`python -m evals.noise_cosines FOLDER`: measures below which cosine a passage is noise, by language, for the embedder of the
system that it starts, and with `--write` puts it into `services/retriever/searching/noise_cosines.json`.

FOLDER holds test collections `ir_xquad_<language>`: the same paragraphs and questions in each language, ids alike. Thresholds are
fitted on the questions about one half of the articles: 1 % of the paragraphs that answer a question lie below. What is printed is
of the other half: how many right paragraphs lie below, and for how many questions about something else (asked of the half of the
articles that theirs is not in) nothing is left.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from groundwork.reranker.v1 import reranker_pb2, reranker_pb2_grpc
from numpy.typing import NDArray

from evals.datasets.loading import load_collection
from evals.retrieval.answerability import auroc
from evals.system import RunningSystem, running_system
from evals.tables import Table

TARGET = Path(__file__).parents[1] / "services" / "retriever" / "searching" / "noise_cosines.json"
LOST_SHARE = 0.01
_PREFIX = "ir_xquad_"
_TEXTS_PER_CALL = 64
_TIMEOUT_S = 300.0

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Embedded:
    """A collection in one language. Vectors float32 [texts, dimension]; `of`: which document answers which query."""

    documents: Vectors
    queries: Vectors
    of: NDArray[np.int64]


@dataclass(frozen=True)
class Measured:
    """Of one pair of languages; the threshold on one half, the rest on the other."""

    threshold: float
    lost: float
    emptied: float
    auroc: float


def measure(asked: Embedded, searched: Embedded, half: NDArray[np.int64], threshold: float | None = None) -> Measured:
    """Questions of one language on paragraphs of another, or of the same. `half`: of each document, 0 or 1."""
    cosines = asked.queries @ searched.documents.T
    right = cosines[np.arange(len(cosines)), asked.of]
    mine = half[asked.of]
    strange = np.where(half[np.newaxis, :] != mine[:, np.newaxis], cosines, -1.0).max(axis=1)
    least = float(np.quantile(right[mine == 0], LOST_SHARE)) if threshold is None else threshold
    tested = mine == 1
    return Measured(
        threshold=least,
        lost=float(np.mean(right[tested] < least)),
        emptied=float(np.mean(strange[tested] < least)),
        auroc=auroc(right[tested].tolist(), strange[tested].tolist()),
    )


async def _embedded(
    system: RunningSystem, texts: Sequence[str], kind: reranker_pb2.EmbedKind.ValueType
) -> tuple[str, Vectors]:
    rows, model = [], ""
    async with system.channel("reranker") as channel:
        stub = reranker_pb2_grpc.RerankerServiceStub(channel)
        for start in range(0, len(texts), _TEXTS_PER_CALL):
            request = reranker_pb2.EmbedRequest(texts=texts[start : start + _TEXTS_PER_CALL], kind=kind)
            answer = await stub.Embed(request, timeout=_TIMEOUT_S)
            rows.append(np.frombuffer(answer.vectors, "<f4").reshape(-1, answer.dimension))
            model = answer.model
    return model, np.concatenate(rows)


async def _collections(
    system: RunningSystem, paths: Sequence[Path]
) -> tuple[str, dict[str, Embedded], NDArray[np.int64]]:
    found, halves, model = {}, {}, ""
    for path in paths:
        collection = load_collection(path)
        ids = [document.document_id for document in collection.documents]
        texts = [f"{each.title}\n\n{each.text}" if each.title else each.text for each in collection.documents]
        model, documents = await _embedded(system, texts, reranker_pb2.EMBED_KIND_PASSAGE)
        asked = [query.text for query in collection.queries]
        _, queries = await _embedded(system, asked, reranker_pb2.EMBED_KIND_QUERY)
        of = [ids.index(next(iter(collection.qrels[query.query_id]))) for query in collection.queries]
        found[path.name.removeprefix(_PREFIX)] = Embedded(documents, queries, np.array(of))
        titles = list(dict.fromkeys(each.title for each in collection.documents))
        if len(titles) > 1:  # the English one alone names its articles
            halves = {each.document_id: titles.index(each.title) % 2 for each in collection.documents}
        sys.stderr.write(f"embedded {path.name}\n")
    return model, found, np.array([halves[document_id] for document_id in ids])


def report(found: dict[str, Embedded], half: NDArray[np.int64]) -> tuple[dict[str, float], float, str]:
    """Thresholds within each language and the one across languages, with the table of what they do."""
    within = {language: measure(each, each, half) for language, each in found.items()}
    pairs = [(one, other) for one in found for other in found if one != other]
    across = min(measure(found[one], found[other], half).threshold for one, other in pairs)
    others = [measure(found[one], found[other], half, across) for one, other in pairs]
    means = [float(np.mean([getattr(each, name) for each in others])) for name in ("lost", "emptied", "auroc")]
    rows = [*within.items(), (f"{len(pairs)} pairs of languages", Measured(across, *means))]
    table = Table(
        ("language", "threshold", "right ones lost", "questions about something else emptied", "AUROC"),
        [(name, f"{m.threshold:.3f}", f"{m.lost:.1%}", f"{m.emptied:.1%}", f"{m.auroc:.3f}") for name, m in rows],
    )
    return {language: round(each.threshold, 3) for language, each in within.items()}, round(across, 3), table.render()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m evals.noise_cosines", description=__doc__)
    parser.add_argument("folder", type=Path, help=f"holds {_PREFIX}<language> for several languages")
    parser.add_argument(
        "--write", metavar="MODEL", help=f"write {TARGET.name} under this beginning of the model's name"
    )
    options = parser.parse_args()
    paths = sorted(options.folder.glob(f"{_PREFIX}*"))
    with running_system() as system:
        model, found, half = asyncio.run(_collections(system, paths))
    within, across, table = report(found, half)
    sys.stdout.write(f"{model}\n\n{table}\n")
    if options.write:
        if not model.startswith(options.write):
            sys.exit(f"the system embeds with {model}, whose name does not begin with {options.write}")
        kept = json.loads(TARGET.read_text("utf-8"))
        kept["models"][options.write] = {"within": within, "across": across}
        TARGET.write_text(json.dumps(kept, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
