"""`groundwork demo`: the sample documents of the server, loaded as a user's own would be, and a first question."""

from __future__ import annotations

import hashlib
import tempfile
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import Annotated
from urllib.parse import quote

import typer

from cli.client.asking import Question
from cli.client.finding import FoundFile
from cli.client.gateway import Gateway, Json
from cli.client.ingestion import Ingestion, ingest
from cli.display.answering import RunView
from cli.display.output import Output, bar_state
from cli.errors import ApiError, CliError
from cli.program import command_line
from cli.running import run


def demo(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
) -> None:
    """Load the sample documents into the collection `demo` and ask them a first question.

    Nine short documents about an invented company, in three languages and eight formats. A second time they are there already, and
    only the question is asked. `groundwork collections delete demo` takes them away.
    """
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        samples = await _samples(gateway)
        collection_id = await _collection(gateway, samples["collection"])
        loaded, ingestion = await _load(gateway, collection_id, samples["documents"], output)
        if any(file.failed for file in ingestion.files):
            output.ingestion(ingestion, waited=True)
            return 1
        question, *others = samples["questions"]
        view = RunView(output)
        if not as_json:
            output.err.print(_said(len(samples["documents"]), loaded, collection_id), markup=False)
            output.err.print(f"\n$ {_asking(question, collection_id)}\n", markup=False)
        await view.follow(gateway, Question(question, (collection_id,)))
        if as_json:
            shown = {"collection_id": collection_id, "loaded_count": loaded}
            shown |= {name: samples[name] for name in ("documents", "questions")}
            output.json({**shown, "answer": view.run.result()})
            return view.exit_code
        view.finish()
        more = "\n".join(f"  {_asking(each, collection_id)}" for each in others)
        output.err.print(f"\nNow you:\n\n{more}\n\nIn a browser: {gateway.base_url}", markup=False)
        return view.exit_code

    run(command, interrupted="Stopped. What was uploaded is being read; `groundwork demo` goes on from there.")


async def _samples(gateway: Gateway) -> Json:
    """Collection, documents and questions. Raises CliError where the server has none."""
    try:
        return await gateway.request("GET", "/samples/samples.json")
    except ApiError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        raise CliError(f"{gateway.base_url} is of an earlier version, which has no samples. Upgrade it.") from error


async def _collection(gateway: Gateway, name: str) -> str:
    """The id of the caller's collection of that name, made where there is none. One that somebody shares under it is read."""
    mine = (await gateway.request("GET", "/v1/collections/default"))["owner"]
    listed = (await gateway.request("GET", "/v1/collections"))["collections"]
    for each in listed:
        if each["name"] == name and each["owner"] == mine:
            return str(each["id"])
    try:
        return str((await gateway.request("POST", "/v1/collections", json={"name": name}))["id"])
    except ApiError as error:
        if error.status != HTTPStatus.CONFLICT:
            raise
        return name


async def _load(gateway: Gateway, collection_id: str, names: list[str], output: Output) -> tuple[int, Ingestion]:
    """Uploads what is not there yet, and waits until it is searchable. Returns how many that were, and what became of them."""
    path = f"/v1/collections/{quote(collection_id, safe='')}/documents"
    ready = {each["name"]: each["sha256"] for each in await gateway.pages(path, "documents", {"status": ["ready"]})}
    with tempfile.TemporaryDirectory() as folder, output.progress_bar() as bar:
        files = []
        for name in names:
            content = await gateway.content(f"/samples/{quote(name, safe='')}")
            if ready.get(name) != hashlib.sha256(content).hexdigest():
                files.append(_saved(content, Path(folder), name))
        task = bar.add_task("Reading the samples", total=len(files), note="", visible=bool(files))
        ingestion = await ingest(
            gateway, collection_id, files, wait=True, on_change=lambda now: bar.update(task, **bar_state(now))
        )
    return len(files), ingestion


def _saved(content: bytes, folder: Path, name: str) -> FoundFile:
    """The server must not choose where files are written: only the last part of the name counts."""
    path = folder / PurePosixPath(name).name
    path.write_bytes(content)
    return FoundFile(path, name)


def _said(count: int, loaded: int, collection_id: str) -> str:
    if not loaded:
        return f"The {count} sample documents are there already, in the collection `{collection_id}`."
    return f"{count} sample documents can be asked now, in the collection `{collection_id}`."


def _asking(question: str, collection_id: str) -> str:
    return command_line("ask", question, "--collection", collection_id)
