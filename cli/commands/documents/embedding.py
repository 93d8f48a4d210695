"""`groundwork embedding`: the embedding model of a collection, changed without uploading anything again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from cli.client.gateway import Gateway, Json, in_path
from cli.display.output import Output
from cli.errors import UsageError
from cli.running import WHERE, run

embedding = typer.Typer(
    no_args_is_help=True, help="Embedding model of a collection: show, change, swap, roll back, drop.", epilog=WHERE
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Collection = Annotated[str, typer.Option("--collection", "-c", help="Collection; `default` is your own.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is built and compared.")]
Questions = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        help="JSON file with what to compare on: a list of {text, document_ids}. Without it, sentences of the collection.",
    ),
]
Margin = Annotated[
    float, typer.Option(min=0, max=1, help="By how much nDCG@10 may be below the old model's for a swap.")
]

_POLL_S = 1.0
_UNDER_WAY = frozenset({"building", "evaluating"})
_COLUMNS = ["way", "model", "nDCG@10", "MRR@10"]


@embedding.command(name="status")
def status(collection: Collection = "default", as_json: AsJson = False) -> None:
    """The model that a collection is searched with, and how far a change has come."""

    async def command(gateway: Gateway) -> int:
        return _shown(await gateway.request("GET", _path(collection)), Output(as_json=as_json))

    run(command)


@embedding.command(name="change")
def change(
    model: Annotated[str, typer.Argument(help="Model, or a part of its name that only it has.")],
    collection: Collection = "default",
    questions: Questions = None,
    margin: Margin = 0.02,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Embed a collection with another model beside the present one, and compare both. Searches go on as before."""

    async def command(gateway: Gateway) -> int:
        output = Output(as_json=as_json)
        now = await gateway.request("GET", _path(collection))
        body: Json = {"model": _meant(model, now["available_models"]), "questions": _read(questions), "margin": margin}
        now = await gateway.request("POST", _path(collection), json=body)
        return _shown(await _settled(gateway, collection, now, output) if wait else now, output)

    run(command)


@embedding.command(name="evaluate")
def evaluate(
    collection: Collection = "default",
    questions: Questions = None,
    margin: Margin = 0.02,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Compare both models of a collection again."""

    async def command(gateway: Gateway) -> int:
        output = Output(as_json=as_json)
        body: Json = {"questions": _read(questions), "margin": margin}
        now = await gateway.request("POST", f"{_path(collection)}/evaluate", json=body)
        return _shown(await _settled(gateway, collection, now, output) if wait else now, output)

    run(command)


@embedding.command(name="swap")
def swap(
    collection: Collection = "default",
    force: Annotated[bool, typer.Option("--force", help="Also where the new model finds less.")] = False,
    as_json: AsJson = False,
) -> None:
    """Search with the new model from now on; the old one is kept until you drop it."""

    async def command(gateway: Gateway) -> int:
        answer = await gateway.request("POST", f"{_path(collection)}/swap", json={"force": force})
        return _shown(answer, Output(as_json=as_json))

    run(command)


@embedding.command(name="rollback")
def rollback(collection: Collection = "default", as_json: AsJson = False) -> None:
    """Search with the old model again."""

    async def command(gateway: Gateway) -> int:
        return _shown(await gateway.request("POST", f"{_path(collection)}/rollback"), Output(as_json=as_json))

    run(command)


@embedding.command(name="drop")
def drop(collection: Collection = "default", as_json: AsJson = False) -> None:
    """Remove the model that is not searched: the new one before a swap, the old one after it."""

    async def command(gateway: Gateway) -> int:
        return _shown(await gateway.request("DELETE", _path(collection)), Output(as_json=as_json))

    run(command)


async def _settled(gateway: Gateway, collection: str, now: Json, output: Output) -> Json:
    """Waits until the models are built and compared, and says how far it is when that changes."""
    said = ""
    while now["stage"] in _UNDER_WAY:
        if not output.as_json and (line := _progress(now)) != said:
            output.out.print(line, markup=False)
            said = line
        await asyncio.sleep(_POLL_S)
        now = await gateway.request("GET", _path(collection))
    return now


def _shown(now: Json, output: Output) -> int:
    if output.as_json:
        output.json(now)
        return 0
    output.out.print(f"{now['collection_id']}: searched with {now['model'] or 'no model yet'}", markup=False)
    if not now["is_chosen"]:
        output.out.print("follows the installation; models: " + ", ".join(now["available_models"]), markup=False)
    if now["other_model"]:
        output.out.print(_progress(now), markup=False)
    if evaluation := now["evaluation"]:
        asked = "made of the collection" if evaluation["is_made"] else "given"
        output.out.print(f"compared on {evaluation['question_count']} questions, {asked}", markup=False)
        output.table(_COLUMNS, _figures(evaluation))
        verdict = "; ".join(evaluation["worse"])
        output.out.print(f"worse: {verdict}" if verdict else "no worse than before", markup=False)
    return 0


def _progress(now: Json) -> str:
    done, whole = now["in_other_model"]["chunk_count"], now["whole"]["chunk_count"]
    line = f"{now['stage']}: {now['other_model']}, {done} of {whole} passages"
    return f"{line} ({now['problem']})" if now["problem"] else line


def _figures(evaluation: Json) -> list[list[str]]:
    return [
        [way, evaluation[f"{side}_model"], f"{quality['ndcg_at_10']:.3f}", f"{quality['mrr_at_10']:.3f}"]
        for way, name in (("vectors", "vectors"), ("vectors and words", "both"))
        for side, quality in evaluation[name].items()
    ]


def _meant(model: str, available: list[str]) -> str:
    """The only model with this in its name; else what was said, which the server refuses with the names that there are."""
    found = [name for name in available if model.casefold() in name.casefold()]
    return found[0] if len(found) == 1 and model not in available else model


def _read(file: Path | None) -> list[Json]:
    if file is None:
        return []
    try:
        questions = json.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise UsageError(f"{file} is no JSON: {error}") from error
    if not isinstance(questions, list):
        raise UsageError(f'{file} holds no list; write [{{"text": …, "document_ids": […]}}, …]')
    return questions


def _path(collection: str) -> str:
    return f"/v1/collections/{in_path(collection, 'collection')}/embedding"
