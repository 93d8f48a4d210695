"""The `groundwork` command: starts the system on this machine, and talks to it over HTTP like any other client."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.client.asking import Question
from cli.client.finding import find_files
from cli.client.gateway import Gateway
from cli.client.ingestion import Ingestion, ingest
from cli.client.searching import SearchFusion, SearchRerank, SearchStrategy, metadata_of
from cli.cluster import cluster
from cli.commands.administration.audit import audit
from cli.commands.administration.jobs import jobs
from cli.commands.administration.limits import limits
from cli.commands.administration.models import models
from cli.commands.administration.tool_servers import tool_servers
from cli.commands.administration.usage import usage
from cli.commands.conversations.agents import agents
from cli.commands.conversations.approvals import approvals
from cli.commands.conversations.chatting import Session, Verify, chat, is_parked
from cli.commands.conversations.connections import connections
from cli.commands.conversations.extract import extract
from cli.commands.conversations.memory import memory
from cli.commands.conversations.research import research
from cli.commands.conversations.runs import runs
from cli.commands.conversations.threads import threads
from cli.commands.conversations.tools import tools
from cli.commands.documents.collections import collections, ensure_collection, where_else
from cli.commands.documents.demo import demo
from cli.commands.documents.documents import documents
from cli.commands.documents.embedding import embedding
from cli.commands.documents.evaluate import evaluate
from cli.commands.documents.sources import sources, watch
from cli.display.answering import RunView
from cli.display.output import Output, ProgressLines, bar_state
from cli.errors import REFUSED, UsageError, document_id, given, in_words
from cli.operating.keys import keys
from cli.operating.signing_keys import signing_keys
from cli.operating.store import backup, doctor, restore
from cli.process import OneText, Program
from cli.program import program
from cli.running import WHERE, exit_code_of, use_key
from cli.running import run as run_connected
from kit.version import release

app = typer.Typer(
    cls=Program,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Answers questions with grounds: upload documents, ask, and see which passage carries each sentence.",
    epilog=WHERE,
)
app.add_typer(documents, name="documents")
app.add_typer(collections, name="collections")
app.add_typer(sources, name="sources")
app.command(epilog=WHERE)(watch)
app.add_typer(embedding, name="embedding")
app.add_typer(jobs, name="jobs")
app.add_typer(threads, name="threads")
app.add_typer(memory, name="memory")
app.add_typer(runs, name="runs")
app.add_typer(models, name="models")
app.add_typer(keys, name="keys")
app.add_typer(signing_keys, name="signing-keys")
app.add_typer(audit, name="audit")
app.add_typer(approvals, name="approvals")
app.add_typer(cluster, name="cluster")
app.command(epilog=WHERE)(demo)
app.command(cls=OneText, epilog=WHERE)(research)
app.command(cls=OneText, epilog=WHERE)(chat)
app.command(epilog=WHERE)(extract)
app.command(epilog=WHERE)(evaluate)
app.command(epilog=WHERE)(tools)
app.add_typer(tool_servers, name="tool-servers")
app.add_typer(connections, name="connections")
app.add_typer(agents, name="agents")
app.command(epilog=WHERE)(usage)
app.add_typer(limits, name="limits")
app.command()(backup)
app.command()(restore)
app.command()(doctor)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Collection = Annotated[str, typer.Option("--collection", "-c", help="Collection.")]
Collections = Annotated[list[str], typer.Option("--collection", "-c", help="Collection; may be repeated.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"groundwork {release()}\n")
        raise typer.Exit


@app.callback()
def common(
    api_key: Annotated[
        str,
        typer.Option(
            help="API key, where the server asks for one. Others on this machine see it: better GROUNDWORK_API_KEY."
        ),
    ] = "",
    version: Annotated[  # noqa: ARG001 - its callback does it
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """What goes for every command."""
    use_key(api_key)


@app.command(epilog=WHERE)
def mcp() -> None:
    """Serve MCP over standard input and output, for desktop assistants: what the server has at /mcp, with your API key."""
    from cli.commands.conversations.mcp import serve_stdio  # noqa: PLC0415 - needed here only, and other commands should start fast

    serve_stdio()


@app.command()
def up(
    llm: Annotated[
        Literal["local"] | None, typer.Option(help="`local`: also run a small language model on this machine.")
    ] = None,
    replicas: Annotated[
        str | None,
        typer.Option(
            metavar="SERVICE=NUMBER,…",
            help="Run several processes of a service side by side, as `orchestrator=3,gateway=2`. Also GROUNDWORK_REPLICAS.",
        ),
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return once it is ready; it goes on in the background until `stop`.")
    ] = False,
) -> None:
    """Start everything on this machine. Ctrl-C stops it; the data stays."""
    from services.standalone import app as standalone  # noqa: PLC0415 - needed here only, and clients should start fast
    from services.standalone import background  # noqa: PLC0415 - needed here only, and clients should start fast

    begin = background.start if detach else standalone.main
    raise typer.Exit(begin(local_llm=llm == "local", replicas=replicas, program=program()))


@app.command()
def stop() -> None:
    """Stop the system that runs on this machine, however it was started, and wait for its end. The data stays."""
    from services.standalone import background  # noqa: PLC0415 - needed here only, and clients should start fast

    raise typer.Exit(background.stop())


@app.command()
def restart(
    services: Annotated[
        list[str] | None,
        typer.Argument(help="Services, or single processes such as `orchestrator-2`; all if none is named."),
    ] = None,
) -> None:
    """Restart the services of the system that runs on this machine, one process after the other, without failing a request.

    Each ends once it has answered what it has in hand; the next has its turn when it is ready again.
    The message store goes on. Exit code 1 if a process does not come back.
    """
    from services.standalone.supervising import restarting  # noqa: PLC0415 - needed here only, and clients should start fast

    raise typer.Exit(restarting.restart(services or []))


@app.command(name="ingest", epilog=WHERE)
def ingest_command(
    paths: Annotated[list[Path], typer.Argument(help="Files and folders; folders are searched through.")],
    collection: Collection = "default",
    create: Annotated[
        bool, typer.Option("--create", help="Make the collection if there is none. It is private.")
    ] = False,
    wait: Annotated[bool, typer.Option(help="Wait until every document is ready or has failed.")] = True,
    encoding: Annotated[
        str,
        typer.Option(
            help="Encoding of the files that are text, as iso-8859-2 or windows-1250. It is found out if not given."
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Upload files and folders. A file below a folder is named with its path from that folder on. Exit code 1 if any fails."""
    output = Output(as_json=as_json)

    async def run(gateway: Gateway) -> int:
        files = find_files(paths)
        if create:
            await ensure_collection(gateway, collection)
        lines = ProgressLines(output)
        with output.progress_bar() as bar:
            task = bar.add_task("Ingesting" if wait else "Uploading", total=len(files), note="")

            def on_change(now: Ingestion) -> None:
                bar.update(task, **bar_state(now))
                lines.update(now)

            ingestion = await ingest(
                gateway,
                collection,
                files,
                wait=wait,
                on_change=on_change,
                encoding=encoding,
            )
        output.ingestion(ingestion, waited=wait)
        return int(any(file.failed for file in ingestion.files))

    run_connected(
        run, interrupted="Stopped waiting. What was uploaded is being processed; see: groundwork documents list"
    )


@app.command(name="ask", cls=OneText, epilog=WHERE)
def ask_command(
    question: Annotated[str, typer.Argument(help="The question.")],
    collection: Collections = ["default"],  # noqa: B006 - typer copies it
    thread: Annotated[str | None, typer.Option(help="Thread to continue.")] = None,
    agent: Annotated[str | None, typer.Option(help="`auto`, or the name of an agent of `groundwork agents`.")] = None,
    verify: Verify = None,
    as_json: AsJson = False,
) -> None:
    """Ask a question; the answer streams, its citations follow. Ctrl-C cancels it.

    Exit code 3 when the answer is that the documents do not say.
    """
    output = Output(as_json=as_json)

    view = RunView(output)

    async def begin(gateway: Gateway) -> int:
        if thread and len(collection) > 1:
            raise UsageError("A thread continues over one collection: give one --collection.")
        if agent and len(collection) > 1:
            raise UsageError("An agent answers over one collection: give one --collection.")
        asked = tuple(given(each, "collection") for each in collection)
        continued = None if thread is None else given(thread, "thread")
        question_ = Question(in_words(question, "question"), asked, continued, agent, verify)
        await view.follow(gateway, question_, until=is_parked)
        return 0

    async def remark(gateway: Gateway) -> int:
        output.remarks(await where_else(gateway, collection))
        return REFUSED

    code = Session(output).see_through(view, exit_code_of(begin, "Cancelled."))
    if code == REFUSED and not as_json:
        code = exit_code_of(remark, "Cancelled.")
    raise typer.Exit(code)


@app.command(cls=OneText, epilog=WHERE)
def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    collection: Collections = ["default"],  # noqa: B006 - typer copies it
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, max=200, help="Hits wanted.")] = 5,
    must: Annotated[list[str], typer.Option("--must", help="A phrase that each hit contains; repeatable.")] = [],  # noqa: B006
    where: Annotated[list[str], typer.Option("--where", help="KEY=VALUE of the metadata; repeatable.")] = [],  # noqa: B006
    document: Annotated[list[str], typer.Option("--document", "-d", help="Only this document; repeatable.")] = [],  # noqa: B006
    date_from: Annotated[str | None, typer.Option("--from", help="Not before this date, as 2024-12-31.")] = None,
    date_to: Annotated[str | None, typer.Option("--to", help="Not after this date.")] = None,
    strategy: Annotated[SearchStrategy | None, typer.Option(help="Which engines to ask.")] = None,
    rerank: Annotated[SearchRerank | None, typer.Option(help="Whether to rerank.")] = None,
    fusion: Annotated[SearchFusion | None, typer.Option(help="How the engines' lists become one.")] = None,
    diversity: Annotated[float, typer.Option(min=0, max=1, help="Share of diversity against relevance.")] = 0.0,
    min_score: Annotated[float | None, typer.Option(min=-1, max=1, help="Least similarity of a hit.")] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show where each hit stood, what was dropped, and why.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Search without answering. What the query has in quotation marks must be in each hit."""
    output = Output(as_json=as_json)

    async def run(gateway: Gateway) -> int:
        body = {
            "query": in_words(query, "query"),
            "collection_ids": [given(each, "collection") for each in collection],
            "top_k": top_k,
            "must": must,
            "filters": {
                "document_ids": [document_id(each) for each in document],
                "metadata": metadata_of(where),
                "date_from": date_from,
                "date_to": date_to,
            },
            "strategy": strategy,
            "rerank": rerank,
            "fusion": fusion,
            "diversity": diversity,
            "min_score": min_score,
            "explain": explain,
        }
        answer = await gateway.request("POST", "/v1/search", json=body)
        if as_json:
            output.json(answer)
        else:
            output.hits(answer, explain=explain)
            if not answer["hits"]:
                output.remarks(await where_else(gateway, collection))
        return 0

    run_connected(run)


@app.command(epilog=WHERE)
def status(as_json: AsJson = False) -> None:
    """State of every service. Exit code 1 unless all are serving."""
    output = Output(as_json=as_json)

    async def run(gateway: Gateway) -> int:
        ready, answer = await gateway.readiness()
        if as_json:
            output.json(answer)
        else:
            states = answer.get("services", {})
            rows = [[name, each["state"], each.get("detail") or ""] for name, each in sorted(states.items())]
            output.table(["service", "state", ""], rows)
            for found in answer.get("damage") or []:
                output.out.print(f"DAMAGE  {found['detail']}. {found['advice']} (groundwork doctor)", markup=False)
            output.out.print(f"{gateway.base_url} is {'ready' if ready else 'not ready'}")
        return 0 if ready else 1

    run_connected(run)


if __name__ == "__main__":
    app()
