"""`groundwork memory`: what is remembered of you, and how to change, forget and take it away."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.client.gateway import Gateway, Json, in_path
from cli.deleting import Yes, confirm
from cli.display.output import Output
from cli.display.terminal import escape
from cli.errors import ApiError, UsageError
from cli.running import WHERE, run

memory = typer.Typer(
    no_args_is_help=True,
    help="What is remembered of you: list, search, edit, forget, export, pause; and your notes.",
    epilog=WHERE,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
FactId = Annotated[str, typer.Argument(help="The fact, as `list` shows it.")]
_FACTS = "/v1/memory/facts"


@memory.command(name="list")
def list_facts(
    kind: Annotated[str, typer.Option("--kind", "-k", help="profile, preference, plan, relation or instruction.")] = "",
    past: Annotated[bool, typer.Option("--past", help="List past facts, too.")] = False,
    thread: Annotated[str, typer.Option("--thread", help="Facts that were learnt in this thread.")] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="At most this many.")] = 100,
    as_json: AsJson = False,
) -> None:
    """What is known of you, newest first."""
    output = Output(as_json=as_json)
    given = {"kind": kind, "thread_id": thread, "with_past": "true" if past else ""}
    params: dict[str, Any] = {name: value for name, value in given.items() if value} | {"page_size": limit}

    async def command(gateway: Gateway) -> int:
        page = await gateway.request("GET", _FACTS, params=params)
        if as_json:
            output.json({"facts": page["facts"]})
            return 0
        output.table(["id", "kind", "learnt", "holds", "fact"], [_row(each) for each in page["facts"]], whole={"id"})
        if not page["facts"]:
            output.remarks(["Nothing is known of you yet."])
        return 0

    run(command)


@memory.command(name="show")
def show_fact(fact_id: FactId, as_json: AsJson = False) -> None:
    """One fact: your words, where you said them, and what it took the place of."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        fact = await gateway.request("GET", f"{_FACTS}/{in_path(fact_id, 'fact')}")
        if as_json:
            output.json(fact)
            return 0
        output.out.print(f"[bold]{escape(fact['text'])}[/bold]")
        lines = [f"{fact['kind']}, {fact['status']}, learnt {fact['learnt_at']} by {fact['learnt_by']}"]
        lines += [f"you said: {fact['said']}"] if fact["said"] else []
        lines += [f"in thread {fact['thread_id']}"] if fact["thread_id"] else []
        lines += [f"until {fact['valid_to']}"] if fact["valid_to"] else []
        lines += [f"before: {each['text']} ({each['learnt_at']})" for each in fact["earlier"]]
        for line in lines:
            output.out.print(line, markup=False)
        return 0

    run(command)


@memory.command(name="summary")
def show_summary(as_json: AsJson = False) -> None:
    """The summary of what is known of you, as models read it."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        summary = await gateway.request("GET", "/v1/memory/summary")
        if as_json:
            output.json(summary)
            return 0
        output.out.print(summary["summary"] or "Nothing is known of you.", markup=False)
        if not summary["enabled"]:
            output.remarks(["Memory is switched off here."])
        elif summary["paused"]:
            output.remarks(["Nothing is learnt now: `groundwork memory resume` learns again."])
        return 0

    run(command)


@memory.command(name="search")
def search_memory(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=50, help="At most this many.")] = 10,
    as_json: AsJson = False,
) -> None:
    """What is remembered that fits, by meaning and by words: facts, messages of your threads, and notes."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        found = await gateway.request("POST", "/v1/memory/search", json={"query": query, "top_k": limit})
        if as_json:
            output.json(found)
            return 0
        rows = [
            [
                (each["fact"] or {}).get("id") or each["thread_id"] or each["document_name"] or "",
                each["source"],
                each["at"] or "",
                each["text"],
            ]
            for each in found["hits"]
        ]
        output.table(["id", "from", "said", "text"], rows, whole={"id"})
        output.remarks([each["message"] for each in found["degraded"]])
        return 0

    run(command)


@memory.command(name="edit")
def edit_fact(
    fact_id: FactId,
    text: Annotated[str, typer.Option("--text", "-t", help="Other words.")] = "",
    kind: Annotated[str, typer.Option("--kind", "-k", help="Another kind.")] = "",
    until: Annotated[str, typer.Option("--until", help="Until when it holds, as 2027-01-31T00:00:00Z.")] = "",
    as_json: AsJson = False,
) -> None:
    """Change a fact. What you write is taken for sure."""
    output = Output(as_json=as_json)
    change = {name: value for name, value in (("text", text), ("kind", kind), ("valid_to", until)) if value}
    if not change:
        raise UsageError("Say what is to change: --text, --kind or --until.")

    async def command(gateway: Gateway) -> int:
        fact = await gateway.request("PATCH", f"{_FACTS}/{in_path(fact_id, 'fact')}", json=change)
        if as_json:
            output.json(fact)
        else:
            output.out.print(f"{fact['id']} {fact['text']}", markup=False)
        return 0

    run(command)


@memory.command(name="forget")
def forget(
    fact_ids: Annotated[list[str] | None, typer.Argument(help="Facts.")] = None,
    text: Annotated[str, typer.Option("--text", "-t", help="All facts that hold these words.")] = "",
    thread: Annotated[str, typer.Option("--thread", help="What was learnt in this thread.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="All facts, and the summary.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Forget facts, with what they took the place of and the answers that were shown them."""
    output = Output(as_json=as_json)
    said: dict[str, Any] = {"fact_ids": fact_ids, "text": text, "thread_id": thread, "everything": everything or None}
    what = {name: value for name, value in said.items() if value}
    if len(what) != 1:
        raise UsageError("Say what to forget: facts by their ids, --text, --thread or --all; one of them.")
    if not yes:
        confirm(f"Forget {_in_words(what)}? It cannot be brought back.", "Nothing was forgotten.")

    async def command(gateway: Gateway) -> int:
        answer = await gateway.request("POST", "/v1/memory/forget", json=what)
        if as_json:
            output.json(answer)
        else:
            count = answer["forgotten"]
            output.out.print(f"{count} fact{'' if count == 1 else 's'} forgotten", markup=False)
        return 0

    run(command)


@memory.command(name="export")
def export_memory() -> None:
    """All facts and the summary as one JSON document: `groundwork memory export > memory.json`."""
    output = Output(as_json=True)

    async def command(gateway: Gateway) -> int:
        output.json(await gateway.request("GET", "/v1/memory/export"))
        return 0

    run(command)


@memory.command(name="note")
def write_note(
    name: Annotated[str, typer.Argument(help="The note: MEMORY.md, memories/tea.md, daily/2027-01-31.md …")],
    file: Annotated[Path, typer.Argument(help="The file with its text.", exists=True, dir_okay=False)],
    as_json: AsJson = False,
) -> None:
    """Write a note, or another version of it: a document of your notes, which conversations go by from then on."""
    output = Output(as_json=as_json)

    async def command(gateway: Gateway) -> int:
        notes = (await gateway.request("GET", "/v1/memory/summary"))["notes_collection_id"]
        try:
            await gateway.request("GET", f"/v1/collections/{in_path(notes, 'collection')}")
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
            await gateway.request("POST", "/v1/collections", json={"id": notes, "name": "Notes"})
        document = await gateway.upload(notes, file, name)
        if as_json:
            output.json(document)
        else:
            output.out.print(f"{document['id']} {document['name']} in {notes}", markup=False)
        return 0

    run(command)


@memory.command(name="pause")
def pause_memory() -> None:
    """Have nothing learnt from what you say from now on. What is known stays."""
    _set_paused(paused=True)


@memory.command(name="resume")
def resume_memory() -> None:
    """Have things learnt again from what you say."""
    _set_paused(paused=False)


def _set_paused(*, paused: bool) -> None:
    output = Output(as_json=False)

    async def command(gateway: Gateway) -> int:
        await gateway.request("POST", "/v1/memory/pause", json={"paused": paused})
        output.out.print("Nothing is learnt from now on." if paused else "Learning again.")
        return 0

    run(command)


def _row(fact: Json) -> list[str]:
    holds = fact["status"] if fact["status"] != "active" else f"until {fact['valid_to']}" if fact["valid_to"] else "yes"
    return [fact["id"], fact["kind"], fact["learnt_at"] or "", holds, fact["text"]]


def _in_words(what: Json) -> str:
    if "fact_ids" in what:
        count = len(what["fact_ids"])
        return "the fact" if count == 1 else f"{count} facts"
    if "text" in what:
        return f"all facts with {what['text']!r}"
    return "what was learnt in the thread" if "thread_id" in what else "everything that is known of you"
